// One wire of runtime/ by itself, as in tests/runtime/test_mutations.cpp: with cargo that nothing but the wire's own orders keeps
// from racing. The runtime's programs put less on some of them.
#include <iterator>

#include "simulate/workloads/bench.hpp"
#include "support/wires_compiled.hpp"
#include "support/wires_world.hpp"

namespace flywheel::simulate {

namespace {
struct Wire {
  const char* name;
  bool (*run)();
};
namespace wires = testing::wires;
constexpr Wire kWires[] = {
    {"queue", wires::queue},           {"counter", wires::counter},           {"inbox", wires::inbox},
    {"mailbox", wires::mailbox},       {"porch", wires::porch},               {"stream", wires::stream},
    {"barrier", wires::barrier},       {"roots", wires::roots},               {"completion", wires::completion},
    {"bulletin", wires::bulletin},     {"spawn", wires::spawn},               {"report", wires::report},
    {"heartbeat", wires::heartbeat},   {"predecessors", wires::predecessors}, {"gate", wires::gate},
    {"leaving", wires::leaving},
};
}  // namespace

void run_wires(Random& random) {
  const Wire& wire = kWires[random.one_of(std::size(kWires))];
  describe_program(wire.name);
  owe({}, 0, 0, 1'000'000);  // there is no runtime whose steps are bounded
  if (!wire.run()) wrong(std::string("cargo is lost on the wire ") + wire.name);
}

}  // namespace flywheel::simulate
