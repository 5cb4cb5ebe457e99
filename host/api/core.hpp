// All parts of one runtime. Handles (executables, runs, buffers) share it, so that memory outlives its last user.
#pragma once

#include "../base/process.hpp"
#include "../kernel/device_state_memory.hpp"
#include "../load/heap.hpp"
#include "../load/loader.hpp"
#include "../submit/dispatcher.hpp"

namespace flywheel {

struct Core {
  Core(const KernelEntry& entry, const Options& chosen, std::unique_ptr<Engine> made)
      : options(chosen), engine(std::move(made)), heap(*engine, options.heap_bytes),
        memory(*engine, options), loader(*engine, memory.dev(), heap, entry, options),
        dispatcher(*engine, memory.dev(), options) {}

  /// False in a child of fork(): threads and GPU are the parent's, and there is nothing to end here.
  bool is_ours() const { return process == this_process(); }
  /// Throws UsageError in a child of fork(). Before any lock of the runtime: a thread that is not there may hold it.
  void require_ours() const;

  Options options;
  std::unique_ptr<Engine> engine;
  Heap heap;
  DeviceStateMemory memory;
  Loader loader;
  Dispatcher dispatcher;
  const int process = this_process();
};

/// Whoever lets go of it last takes it apart, or has it done, see DeferredRelease.
std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine);

}  // namespace flywheel
