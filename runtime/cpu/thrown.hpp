// Exceptions of task bodies on CPU workers: the task fails, the worker goes on. The executor and CpuCompiled call the parts of
// tasks through CatchingTasks.
#pragma once

#include <exception>

#include "tasks.hpp"

namespace flywheel::detail {

/// Keeps the text of an exception that task `task` of the run in `slot` threw.
using KeepThrown = void (*)(const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text);
/// The host's KeepThrown, set by keep_what_bodies_throw() in host/engine/thrown_texts.cpp; 0 without a host. Bits, to
/// be one atomic word.
inline std::uint64_t keep_thrown = 0;

/// Fails the task with Status::task_threw, unless it has failed already, and gives the text to the host.
inline void note_thrown(TaskContext& context, const char* text) {
  // Acquire: pairs with the release in keep_what_bodies_throw() (host/engine/thrown_texts.cpp), so that the
  // function sees what the host set up before.
  const auto keep = reinterpret_cast<KeepThrown>(CpuPlatform::system(keep_thrown).load(Order::acquire));
  if (keep) keep(*context.dev, context.item.run, context.header->local, text);
  if (!context.outcome.code) context.outcome.code = static_cast<std::uint32_t>(Status::task_threw);
}

/// Calls `body()`. An exception fails its task.
template <class Body>
void catch_thrown(TaskContext& context, Body&& body) {
  try {
    body();
  } catch (const std::exception& thrown) {
    const char* const text = thrown.what();
    note_thrown(context, text ? text : "without a text");
  } catch (...) {
    note_thrown(context, "not a std::exception");
  }
}

/// What the loops take for a list: each call goes through the block's pointers, and may throw.
struct CatchingTasks {
  template <class P>
  static void run(const TaskRecord& record, CpuWorkerBlock<P>& block) {
    catch_thrown(block.context(), [&] { block.tasks().run(record, block); });
  }
  template <class P>
  static void compute(const TaskRecord& record, CpuWorkerBlock<P>& block, CpuOperands& operands) {
    catch_thrown(block.context(), [&] { block.tasks().compute(record, block, operands); });
  }
  template <class P>
  static void pack(const TaskRecord& record, CpuWorkerBlock<P>& block, unsigned char* to) {
    catch_thrown(block.context(), [&] { block.tasks().pack(record, block, to); });
  }
};

}  // namespace flywheel::detail
