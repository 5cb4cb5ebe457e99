// Which process this is, since a child of fork() has neither the threads nor the device of its parent's runtimes.
#pragma once

namespace flywheel {

/// How many fork()s the process descends from, since the first runtime. As good as its id, and no system call.
int this_process();

}  // namespace flywheel
