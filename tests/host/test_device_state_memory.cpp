#include "host/kernel/device_state_memory.hpp"
#include "support/internals.hpp"

#include "support/frail_engine.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("a runtime that finds no memory, at whatever piece, gives back what it has taken") {
  const auto frailty = std::make_shared<Frailty>();
  const auto start = [&] {
    const KernelEntry& entry = kernel_entry<Count>();
    Runtime runtime(entry, on_cpu(), std::make_unique<FrailEngine>(entry, on_cpu(), frailty));
    CHECK(frailty->pieces > 10);
  };
  int refused = 0;
  for (bool started = false; !started; ++refused) {
    frailty->pieces_left = refused;
    started = error_of<DeviceError>(start).empty();
    CHECK(frailty->pieces == 0);
  }
  CHECK(refused > 10);
}
