// One wire of runtime/ by itself, as in tests/runtime/test_mutations.cpp: with cargo that nothing but the wire's own orders
// keeps from racing. The runtime's programs put less on some of them.
#include <iterator>

#include "simulate/workloads/bench.hpp"
#include "support/wires_compiled.hpp"
#include "support/wires_control.hpp"

namespace flywheel::simulate {

namespace {
struct Wire {
  const char* name;
  bool (*run)();
};
namespace views = testing::views;
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
    {"continuation", views::continuation},
    {"parts", views::parts},
    {"report", views::report},
    {"heartbeat", views::heartbeat},
    {"predecessors", views::predecessors},
    {"gate", views::gate},
    {"leaving", views::leaving},
    {"cancelled", views::cancelled},
};
}  // namespace

void run_wires(Random& random) {
  const Wire& wire = kWires[random.one_of(std::size(kWires))];
  describe_program(wire.name);
  owe({}, 0, 0, 1'000'000);  // there is no runtime whose steps are bounded
  if (!wire.run()) wrong(std::string("cargo is lost on the wire ") + wire.name);
}

}  // namespace flywheel::simulate
