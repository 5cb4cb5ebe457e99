// Exceptions of task bodies on CPU workers: the task fails, the worker goes on. A GPU has none, and no part in this.
#pragma once

#include "../dynamic/block.hpp"

#ifndef __CUDA_ARCH__
#include <exception>
#endif

namespace flywheel::detail {

/// Keeps what an exception of a task of the run in a slot says.
using KeepThrown = void (*)(const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text);
/// The host's, see host/submit/completion; 0 where there is no host. As bits, so that it is one word.
inline std::uint64_t keep_thrown = 0;

#ifndef __CUDA_ARCH__
inline void note_thrown(TaskContext& context, const char* text) {
  // Acquire: pairs with the release in host/submit/completion, keep_what_bodies_throw().
  const auto keep = reinterpret_cast<KeepThrown>(CpuPlatform::system(keep_thrown).load(Order::acquire));
  if (keep) keep(*context.dev, context.item.run, context.header->local, text);
  if (!context.outcome.code) context.outcome.code = static_cast<std::uint32_t>(Status::task_threw);
}
#endif

/// Calls `body()`; what it throws fails its task.
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

/// A list of task types whose bodies and packing may throw.
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
