// Exceptions of task bodies on CPU workers: the task fails, the worker goes on. The CPU executor and CpuCompiled call
// their task types through CatchingList. GPU code has no exceptions; there a body is just called.
#pragma once

#include "../dynamic/block.hpp"

#ifndef __CUDA_ARCH__
#include <exception>
#endif

namespace flywheel::detail {

/// Keeps the text of an exception that task `task` of the run in `slot` threw.
using KeepThrown = void (*)(const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text);
/// The host's KeepThrown, set by keep_what_bodies_throw() in host/engine/thrown_texts.cpp; 0 without a host. Bits, to
/// be one atomic word.
inline std::uint64_t keep_thrown = 0;

#ifndef __CUDA_ARCH__
/// Fails the task with Status::task_threw, unless it has failed already, and gives the text to the host.
inline void note_thrown(TaskContext& context, const char* text) {
  // Acquire: pairs with the release in keep_what_bodies_throw() (host/engine/thrown_texts.cpp), so that the
  // function sees what the host set up before.
  const auto keep = reinterpret_cast<KeepThrown>(CpuPlatform::system(keep_thrown).load(Order::acquire));
  if (keep) keep(*context.dev, context.item.run, context.header->local, text);
  if (!context.outcome.code) context.outcome.code = static_cast<std::uint32_t>(Status::task_threw);
}
#endif

/// Calls `body()`. An exception fails its task.
template <class Body>
FLYWHEEL_TASK void catch_thrown([[maybe_unused]] TaskContext& context, Body&& body) {
#ifdef __CUDA_ARCH__
  body();  // the CPU platform is never instantiated for the device
#else
  try {
    body();
  } catch (const std::exception& thrown) {
    note_thrown(context, thrown.what());
  } catch (...) {
    note_thrown(context, "not a std::exception");
  }
#endif
}

/// The same list of task types, for bodies, compute parts and packing that may throw.
template <class List>
struct CatchingList : List {
  template <class Block>
  FLYWHEEL_TASK static void run(const TaskRecord& record, Block& block) {
    catch_thrown(block.context(), [&] { List::run(record, block); });
  }
  template <class Block>
  FLYWHEEL_TASK static void pack(const TaskRecord& record, Block& block, unsigned char* to) {
    catch_thrown(block.context(), [&] { List::pack(record, block, to); });
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK static void compute(const TaskRecord& record, Block& block, Operands& operands) {
    catch_thrown(block.context(), [&] { List::compute(record, block, operands); });
  }
};

}  // namespace flywheel::detail
