// The work of a task, the same in bodies of the runtime and in kernels of the peers: one thread spins on a clock that counts
// its own work, the others of the block wait for it.
#pragma once

#include "apps/measure/work_clock.hpp"
#include "apps/serve_bench/service.hpp"

namespace serve {

using measure::spin_for;

/// How many ticks of its clock a task of so many us spins for. On a GPU: at its boost clock.
std::int64_t work_ticks(double task_us, bool on_gpu);

}  // namespace serve
