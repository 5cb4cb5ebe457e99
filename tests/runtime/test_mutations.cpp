// The memory orders are needed: weaken one, and ThreadSanitizer sees a race on what travels over that wire.
//
// Every wire first runs as it is. Under ThreadSanitizer each mutation then runs in a process of its own,
// which must end with a report of a data race.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>

#include "support/child.hpp"
#include "support/wires_compiled.hpp"
#include "support/wires_control.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Wire {
  std::string_view name;
  bool (*run)();
};
constexpr Wire kWires[] = {
    {"queue", views::queue},
    {"counter", views::counter},
    {"awaited", views::awaited},
    {"given up", views::given_up},
    {"inbox", views::inbox},
    {"mailbox", views::mailbox},
    {"direct slot", views::direct_slot},
    {"stream", views::stream},
    {"barrier", views::barrier},
    {"roots", views::roots},
    {"completion", views::completion},
    {"followers", views::followers},
    {"announcement", views::announcement},
    {"spawn", views::spawn},
    {"spawn many", views::spawn_many},
    {"continuation", views::continuation},
    {"parts", views::parts},
    {"report", views::report},
    {"heartbeat", views::heartbeat},
    {"predecessors", views::predecessors},
    {"gate", views::gate},
    {"leaving", views::leaving},
    {"cancelled", views::cancelled},
};

constexpr Mutation kMutations[] = {
    {"queue", "slots", Access::store, Order::release, Order::relaxed},
    {"queue", "slots", Access::load, Order::acquire, Order::relaxed},
    {"counter", "counter", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"counter", "counter", Access::fetch_add, Order::acq_rel, Order::release},
    {"awaited", "counter", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"awaited", "counter", Access::fetch_add, Order::acq_rel, Order::release},
    {"awaited", "counter", Access::load, Order::acquire, Order::relaxed},
    {"given up", "counter", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"given up", "counter", Access::fetch_and, Order::acq_rel, Order::acquire},
    {"given up", "counter", Access::fetch_and, Order::acq_rel, Order::release},
    {"inbox", "entries", Access::store, Order::release, Order::relaxed},
    {"inbox", "entries", Access::load, Order::acquire, Order::relaxed},
    {"inbox", "consumed", Access::store, Order::release, Order::relaxed},
    {"mailbox", "bits", Access::fetch_or, Order::release, Order::relaxed},
    {"mailbox", "bits", Access::fetch_and, Order::acquire, Order::relaxed},
    {"mailbox", "mailboxes", Access::store, Order::release, Order::relaxed},
    {"mailbox", "mailboxes", Access::load, Order::acquire, Order::relaxed},
    {"direct slot", "waiting", Access::store, Order::release, Order::relaxed},
    {"direct slot", "waiting", Access::exchange, Order::acquire, Order::relaxed},
    {"direct slot", "item", Access::store, Order::release, Order::relaxed},
    {"direct slot", "item", Access::load, Order::acquire, Order::relaxed},
    {"stream", "cells", Access::store, Order::release, Order::relaxed},
    {"stream", "cells", Access::load, Order::acquire, Order::relaxed},
    {"stream", "consumed", Access::store, Order::release, Order::relaxed},
    {"stream", "consumed", Access::load, Order::acquire, Order::relaxed},
    {"stream", "limit", Access::store, Order::release, Order::relaxed},
    {"stream", "limit", Access::load, Order::acquire, Order::relaxed},
    {"barrier", "barrier", Access::fetch_add, Order::release, Order::relaxed},
    {"barrier", "barrier", Access::load, Order::acquire, Order::relaxed},
    {"roots", "roots", Access::store, Order::release, Order::relaxed},
    {"roots", "roots", Access::fetch_add, Order::acquire, Order::relaxed},
    {"completion", "outstanding", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"completion", "outstanding", Access::fetch_add, Order::acq_rel, Order::release},
    {"completion", "word", Access::store, Order::release, Order::relaxed},
    {"followers", "list", Access::compare_exchange, Order::release, Order::relaxed},
    {"followers", "list", Access::load, Order::acquire, Order::relaxed},
    {"followers", "list", Access::exchange, Order::acq_rel, Order::acquire},
    {"followers", "list", Access::exchange, Order::acq_rel, Order::release},
    {"followers", "waits", Access::load, Order::acquire, Order::relaxed},
    {"followers", "waits", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"announcement", "announcement", Access::store, Order::release, Order::relaxed},
    {"announcement", "announcement", Access::load, Order::acquire, Order::relaxed},
    {"spawn", "pool", Access::store, Order::release, Order::relaxed},
    {"spawn", "pool", Access::load, Order::acquire, Order::relaxed},
    {"spawn many", "pool", Access::store, Order::release, Order::relaxed},
    {"spawn many", "pool", Access::load, Order::acquire, Order::relaxed},
    {"spawn many", "ready", Access::store, Order::release, Order::relaxed},
    {"continuation", "arrivals", Access::fetch_add, Order::acq_rel, Order::acquire},
    {"continuation", "arrivals", Access::fetch_add, Order::acq_rel, Order::release},
    {"parts", "arrivals", Access::compare_exchange, Order::acq_rel, Order::acquire},
    {"parts", "arrivals", Access::compare_exchange, Order::acq_rel, Order::release},
    {"report", "reason", Access::store, Order::release, Order::relaxed},
    {"heartbeat", "state", Access::store, Order::release, Order::relaxed},
    {"predecessors", "counters", Access::fetch_add, Order::release, Order::relaxed},
    {"predecessors", "counters", Access::load, Order::acquire, Order::relaxed},
    {"gate", "gate", Access::fetch_add, Order::release, Order::relaxed},
    {"gate", "gate", Access::load, Order::acquire, Order::relaxed},
    {"leaving", "left", Access::fetch_add, Order::release, Order::relaxed},
    {"leaving", "left", Access::load, Order::acquire, Order::relaxed},
    {"cancelled", "cancelled", Access::store, Order::release, Order::relaxed},
    {"cancelled", "cancelled", Access::load, Order::acquire, Order::relaxed},
};

}  // namespace

TEST_CASE("every wire brings over plain memory") {
  for (const Wire& wire : kWires) {
    INFO(wire.name);
    CHECK(wire.run());
  }
}

TEST_CASE("every wire has a mutation") {
  for (const Wire& wire : kWires) {
    const bool has =
        std::any_of(std::begin(kMutations), std::end(kMutations), [&](const Mutation& m) { return m.wire == wire.name; });
    INFO(wire.name);
    CHECK(has);
  }
}

#ifdef __SANITIZE_THREAD__
namespace {

constexpr const char* kVariable = "FLYWHEEL_MUTATION";

const Wire& wire_of(const Mutation& mutation) {
  for (const Wire& wire : kWires)
    if (wire.name == mutation.wire) return wire;
  throw std::logic_error("a mutation names a wire that is not there");
}

std::string text_of(const Mutation& m) {
  constexpr const char* kAccess[] = {"load", "store", "exchange", "fetch_add", "fetch_or", "fetch_and", "compare_exchange"};
  constexpr const char* kOrder[] = {"relaxed", "acquire", "release", "acq_rel"};
  return std::string(m.wire) + ": " + std::string(m.words) + "." + kAccess[static_cast<int>(m.access)] + " " +
         kOrder[static_cast<int>(m.from)] + " -> " + kOrder[static_cast<int>(m.to)];
}

}  // namespace

TEST_CASE("mutated wire", "[.child]") {
  const char* number = std::getenv(kVariable);
  REQUIRE(number);
  const Mutation& mutation = kMutations[std::strtoul(number, nullptr, 10)];
  weakening.mutation = &mutation;
  wire_of(mutation).run();
  REQUIRE(weakening.first);  // the wire must have named the words
}

/// A race is seen where the two threads come close enough, which a process now and then misses on a busy machine. An order that
/// is not needed is seen in none.
TEST_CASE("ThreadSanitizer sees every weakened order") {
  constexpr std::uint32_t kProcesses = 5;
  const std::string options = "halt_on_error=1:exitcode=66";
  for (std::size_t m = 0; m < std::size(kMutations); ++m) {
    ChildResult child;
    std::uint32_t processes = 0;
    do {
      child = run_child("mutated wire", std::chrono::seconds(30), {{kVariable, std::to_string(m)}, {"TSAN_OPTIONS", options}});
    } while (child.status == 0 && ++processes < kProcesses);
    const std::string what = text_of(kMutations[m]);
    INFO(what << "\n" << child.output);
    CHECK(child.status == 66);
    CHECK(child.output.find("data race") != std::string::npos);
    std::printf("%-60s %s after %.2f s, missed by %u\n", what.c_str(), child.status == 66 ? "seen" : "NOT SEEN", child.seconds,
                processes);
  }
}
#endif
