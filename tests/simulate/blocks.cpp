// Emulated blocks as threads of the simulator, and their threads as parts of those: what ThreadSanitizer would take for fibers.
#include "simulate/blocks.hpp"

#include "simulate/leaks.hpp"
#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

void keep_for_blocks(void* at, std::size_t bytes) { scheduler.locals().leave_out({static_cast<unsigned char*>(at), bytes}); }
void block_owns(void* at, std::size_t bytes) {
  const leaks::OurOwn here;
  scheduler.self().shared.push_back({static_cast<unsigned char*>(at), bytes});
}
void block_begins(const void* device) { scheduler.block_begins(device); }
void block_ends() { scheduler.block_ends(); }
void ignore(int by) {
  if (scheduler.on()) scheduler.part().ignored += by;
}
void copy_any_scope(bool yes) {
  if (scheduler.on()) scheduler.part().any_scope = yes;
}

}  // namespace flywheel::simulate

using flywheel::simulate::Part;
using flywheel::simulate::scheduler;

extern "C" {
void* __tsan_create_fiber(unsigned) {
  const flywheel::simulate::leaks::OurOwn here;  // a fiber that is left in the middle of something is not destroyed
  return new Part{0, true, false};
}
void __tsan_destroy_fiber(void* fiber) { delete static_cast<Part*>(fiber); }
void __tsan_switch_to_fiber(void* fiber, unsigned) { scheduler.become(*static_cast<Part*>(fiber)); }
void* __tsan_get_current_fiber() { return &scheduler.part(); }
}
