// Detects that the current process is a child of fork(), which has neither the threads nor the device of its parent's
// runtimes. Included by the core of a runtime and by the loader.
#pragma once

namespace flywheel::detail {

/// The number of fork()s between the process that created the first runtime and this one. Comparing two values tells a
/// child from its parent without a system call.
int this_process();

}  // namespace flywheel::detail
