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

  Options options;
  std::unique_ptr<Engine> engine;
  Heap heap;
  WorldMemory memory;
  Loader loader;
  Pump pump;
};

}  // namespace flywheel
