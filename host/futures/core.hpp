// The core of a runtime holds all its parts. The Runtime and its handles (executables, runs, buffers) share the
// ownership of the core, so its memory lives until the last of them is gone. The sources of api/, futures/ and gemm/ have it.
#pragma once

#include "../base/process.hpp"
#include "../kernel/device_state_memory.hpp"
#include "../load/batch_blocks.hpp"
#include "../load/heap.hpp"
#include "../load/loader.hpp"
#include "../submit/dispatcher.hpp"
#include "callbacks.hpp"

namespace flywheel::detail {

struct Core {
  Core(const KernelEntry& entry, const Options& chosen, std::unique_ptr<Engine> made)
      : options(chosen),
        engine(std::move(made)),
        heap(*engine, options.heap_bytes),
        memory(*engine, options),
        loader(*engine, memory, heap, entry, options),
        batch_blocks(memory.dev(), entry),
        dispatcher(*engine, memory.dev(), options) {}

  /// False in a child of fork(): threads and GPU belong to the parent, and the child must not end them.
  bool is_ours() const { return process == this_process(); }
  /// Throws UsageError in a child of fork(). Call it before any lock of the runtime is taken: in the child, a thread
  /// that no longer exists may hold that lock.
  void require_ours() const;

  Options options;
  std::unique_ptr<Engine> engine;
  Heap heap;
  DeviceStateMemory memory;
  Loader loader;
  BatchBlocks batch_blocks;
  Dispatcher dispatcher;
  Callbacks callbacks;
  const int process = this_process();
};

/// Makes a core. When its last owner drops it, that owner's thread destroys it, or a new thread does, see
/// DeferredRelease.
std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine);

}  // namespace flywheel::detail
