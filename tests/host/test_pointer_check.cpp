// Which pointers a kernel on a GPU can use.
#include "host/engine/pointer_check.hpp"
#include "support/internals.hpp"

#include "support/expect.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("memory of the runtime's own GPU is usable, and memory of another one is refused by both their numbers") {
  CHECK(why_unusable({MemoryKind::device, 1, true}, 1).empty());
  check_says(why_unusable({MemoryKind::device, 3, true}, 1),
             {"memory of GPU 3", "the runtime is on GPU 1", "cudaSetDevice(1)"});
  check_says(why_unusable({MemoryKind::device, 0, false}, 2), {"memory of GPU 0", "the runtime is on GPU 2"});
}

TEST_CASE("host memory is usable if the device has an address for it") {
  CHECK(why_unusable({MemoryKind::registered, 0, true}, 1).empty());
  check_says(why_unusable({MemoryKind::registered, 0, false}, 1), {"not mapped for GPU 1", "cudaHostRegisterMapped"});
  CHECK(why_unusable({MemoryKind::managed, 0, true}, 1).empty());
  check_says(why_unusable({MemoryKind::ordinary, 0, false}, 0), {"ordinary host memory", "Runtime::allocate()"});
}
