// All parts of one runtime. Handles (executables, runs, buffers) share it, so that memory outlives its last user.
#pragma once

#include "host/heap.hpp"
#include "host/loader.hpp"
#include "host/pump.hpp"

namespace flywheel {

struct Core {
  Core(const KernelEntry& entry, const Options& chosen, std::unique_ptr<Engine> made)
      : options(chosen), engine(std::move(made)), heap(*engine, options.heap_bytes),
        memory(*engine, options), loader(*engine, memory.world(), heap, entry, options),
        pump(*engine, memory, options) {}

  /// False in a child of fork(): threads and GPU are the parent's, and there is nothing to end here.
  bool is_ours() const { return process == this_process(); }
  /// Throws UsageError in a child of fork(). Before any lock of the runtime: a thread that is not there may hold it.
  void require_ours() const;
  /// How many fork()s the process descends from, since the first runtime. As good as its id, and no system call.
  static int this_process();

  Options options;
  std::unique_ptr<Engine> engine;
  Heap heap;
  WorldMemory memory;
  Loader loader;
  Pump pump;
  const int process = this_process();
};

/// Whoever lets go of it last takes it apart, or has it done, see NoFarewells.
std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine);

/// While one of these lives on a thread, a core that is let go of there is taken apart by another: the pump's own cannot wait
/// for itself to end, and a CUDA stream's callback may not call CUDA.
class NoFarewells {
 public:
  NoFarewells() { ++depth_; }
  ~NoFarewells() { --depth_; }
  NoFarewells(const NoFarewells&) = delete;
  NoFarewells& operator=(const NoFarewells&) = delete;
  static bool here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace flywheel
