// <flywheel/flywheel.hpp>: for programs that build graphs and submit them.
//
//   struct Saxpy {                                     // a task type: plain members and a call operator
//     float a; const float* x; float* y; int n;
//     template <class Block> FLYWHEEL_TASK void operator()(Block& block) const {
//       block.stream(n, flywheel::reads(x, y), flywheel::writes(y), [&](float u, float v) { return a * u + v; });
//     }
//   };
//
//   flywheel::Runtime rt = flywheel::start<Saxpy>();   // on the GPU if there is one, else on CPU workers
//   auto x = rt.upload(xs), y = rt.upload(ys);
//   flywheel::Graph g;
//   g.add(Saxpy{2.f, x.data(), y.data(), 1000});
//   rt.submit(rt.load(g)).wait();                      // microseconds, no kernel launch
#pragma once

#include <flywheel/version.hpp>

#include "../../api/runtime.hpp"
#include "../../api/tree.hpp"
#include "../../base/options.hpp"
#include "../../futures/await.hpp"
#include "../../futures/completion_queue.hpp"
#include "../../futures/when.hpp"
#include "../../plan/graph.hpp"
#include "../../trace/trace.hpp"

namespace flywheel {

namespace detail {
/// The kernel for these task types; defined in <flywheel/task.cuh>.
template <class... Tasks>
const KernelEntry& kernel_entry();
}  // namespace detail

/// Starts a runtime for these task types. The file that calls it must include <flywheel/task.cuh>. Throws what the
/// constructor of Runtime throws.
template <class... Tasks>
Runtime start(const Options& options = {}) {
  return Runtime(detail::kernel_entry<Tasks...>(), options);
}

}  // namespace flywheel
