// Stand-ins for the blocks and operands that bodies get, for Graph::add() and the checks of task types: all that a portable
// body may call, and nothing behind it. So a program that only submits brings no scheduler. Nothing here ever runs.
//
// What each member does is said at OneThread, BlockCore (runtime/dynamic/block.hpp), CpuBlock (runtime/cpu/block.hpp) and
// CpuOperands (runtime/compiled/operands.hpp). tests/runtime/test_any_block.cpp holds the members against theirs.
#pragma once

#include "one_thread.hpp"
#include "param.hpp"
#include "task.hpp"

namespace flywheel::detail {

template <bool kGpu>
struct AnyBlock : OneThread {
  static constexpr bool kOnGpu = kGpu;

  template <class T>
  FLYWHEEL_TASK static T shuffle_xor(T value, int) {
    return value;
  }
  template <class T>
  FLYWHEEL_TASK T* scratch(int) {
    return nullptr;
  }

  // The run.
  FLYWHEEL_TASK void fail(std::uint32_t) {}
  FLYWHEEL_TASK bool cancelled() { return false; }
  template <class T>
  FLYWHEEL_TASK T param(Param<T>) const {
    return {};
  }
  template <class T>
  FLYWHEEL_TASK bool emit(T) {
    return false;
  }
  template <class Task>
  [[nodiscard]] FLYWHEEL_TASK bool spawn(const Task&, Priority = Priority::inherit) {
    return false;
  }
  template <class Make>
  [[nodiscard]] FLYWHEEL_TASK std::uint32_t spawn_n(std::uint32_t, Make&&, Priority = Priority::inherit) {
    return 0;
  }
  template <class Task>
  [[nodiscard]] FLYWHEEL_TASK bool then(const Task&, Priority = Priority::inherit) {
    return false;
  }
  FLYWHEEL_TASK void choose(std::uint32_t) {}
  FLYWHEEL_TASK void again() {}
  FLYWHEEL_TASK std::uint32_t iteration() const { return 0; }
  FLYWHEEL_TASK void stop() {}
  FLYWHEEL_TASK bool arrives_last(std::uint64_t&, std::uint32_t) const { return false; }
  FLYWHEEL_TASK std::uint32_t worker() const { return 0; }
  FLYWHEEL_TASK std::uint32_t workers() const { return 1; }
  FLYWHEEL_TASK std::uint32_t idle_workers() const { return 0; }
  FLYWHEEL_TASK bool grid_sync() { return false; }

  // Early tasks.
  FLYWHEEL_TASK std::uint32_t stamp() const { return 0; }
  FLYWHEEL_TASK static constexpr bool await() { return true; }
  FLYWHEEL_TASK static constexpr bool await_sent() { return true; }
  FLYWHEEL_TASK static constexpr void sent() {}
};

struct AnyOperands {
  FLYWHEEL_TASK const unsigned char* consumer_wait() { return nullptr; }
  FLYWHEEL_TASK void consumer_release() {}
};

}  // namespace flywheel::detail
