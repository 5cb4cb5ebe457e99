// Exceptions of task bodies on CPU workers: the task fails, the worker goes on. A GPU has none, and no part in this.
#pragma once

#include "runtime/block.hpp"

#ifndef __CUDA_ARCH__
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#endif

namespace flywheel::detail {

#ifndef __CUDA_ARCH__
/// What exceptions said, until the host collects the run.
class ThrownTexts {
 public:
  static ThrownTexts& all() {
    static ThrownTexts texts;
    return texts;
  }
  void keep(const World& world, std::uint32_t slot, std::uint32_t task, const char* text) {
    std::scoped_lock lock(mutex_);
    texts_[{world.control, slot, task}] = text;
  }
  /// Of a task of the run in a slot. Forgets those of the run's others.
  std::string take(const World& world, std::uint32_t slot, std::uint32_t task) {
    std::scoped_lock lock(mutex_);
    const auto begin = texts_.lower_bound({world.control, slot, 0});
    const auto end = texts_.upper_bound({world.control, slot, 0xffffffffu});
    const auto found = texts_.find({world.control, slot, task});
    std::string text = found == texts_.end() ? "" : found->second;
    texts_.erase(begin, end);
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const void*, std::uint32_t, std::uint32_t>, std::string> texts_;
};

inline void note_thrown(TaskContext& context, const char* text) {
  ThrownTexts::all().keep(*context.world, context.item.run, context.header->local, text);
  if (!context.asked.code) context.asked.code = static_cast<std::uint32_t>(Status::task_threw);
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
