// Task types: one that does whatever its record says, and those that need a type of their own.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace flywheel::abuse {

/// What bodies of one run share with the host. Never freed: a run may outlive all handles to it.
struct Call {
  std::atomic<std::uint32_t> bodies{0};
  std::atomic<std::uint32_t> spawned{0};
  std::atomic<std::uint32_t> met{0};
  const std::atomic<std::uint64_t>* mercy = nullptr;  // of the runtime: endless tasks end once it reaches the ticket
  std::uint64_t ticket = 0;
};

/// What is special about one task of a graph; all others are plain.
enum class Special : std::uint32_t { none, fails, throws, endless, deaf, emits, spawns, scratch, stops, slow, forks, turns };
inline constexpr const char* kSpecialNames[] = {"none",   "fails",   "throws", "endless", "deaf",  "emits",
                                                "spawns", "scratch", "stops",  "slow",    "forks", "turns"};

inline constexpr const char* kThrown = "thrown by a body";

/// Counts; ends when its work is over, see ends_at().
struct Leaf {
  Param<Call*> call;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.param(call)->bodies.fetch_add(1, std::memory_order_relaxed);
  }
};

template <class Block>
void last(Block& block, const Call& mine) {
  while (!block.cancelled() && mine.mercy->load(std::memory_order_relaxed) < mine.ticket) std::this_thread::yield();
}
template <class Block>
void emit(Block& block, std::uint32_t values) {
  for (std::uint32_t i = 0; i < values; ++i)
    if (!block.emit(std::uint64_t{block.iteration()} * values + i)) return;
}
template <class Block, class Task>
void spawn(Block& block, Call& mine, const Task& task, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i)
    if (block.spawn(task)) mine.spawned.fetch_add(1, std::memory_order_relaxed);
}

/// Spawns before a continuation.
template <class Block, class Task>
void fork_join(Block& block, Call& mine, const Task& task, std::uint32_t times) {
  if (block.then(task)) mine.spawned.fetch_add(1, std::memory_order_relaxed);
  spawn(block, mine, task, times);
}
/// A loop of one task: goes round `more` times more in each pass.
template <class Block>
void turn(Block& block, Call& mine, std::uint32_t more) {
  if (mine.met.fetch_add(1, std::memory_order_relaxed) % (more + 1) == more) return;
  mine.spawned.fetch_add(1, std::memory_order_relaxed);
  block.again();
}

/// What the task's body does besides; `child`: what it spawns.
template <class Block, class Task>
void be_special(Block& block, Special special, std::uint32_t argument, Call& mine, const Task& child) {
  switch (special) {
    case Special::none:
      return;
    case Special::fails:
      return block.fail(argument);
    case Special::throws:
      throw std::runtime_error(kThrown);
    case Special::endless:
      return last(block, mine);
    case Special::emits:
      return emit(block, argument);
    case Special::spawns:
      return spawn(block, mine, child, argument);
    case Special::forks:
      return fork_join(block, mine, child, argument);
    case Special::turns:
      return turn(block, mine, argument);
    case Special::scratch:
      return (void)block.template scratch<char>(1 << 30);
    case Special::stops:
      if (block.iteration() == argument) block.stop();
      return;
    case Special::deaf:
    case Special::slow:
      return std::this_thread::sleep_for(std::chrono::microseconds(argument));
  }
}

struct Step {
  Param<Call*> call;
  Param<std::uint64_t> in;
  std::uint64_t adds;
  Special special;
  std::uint32_t argument;

  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    Call& mine = *block.param(call);
    mine.bodies.fetch_add(1, std::memory_order_relaxed);
    be_special(block, special, argument, mine, Leaf{call});
    return block.param(in) * 7 + adds;
  }
};

/// A grid task.
struct Grid {
  Param<Call*> call;
  std::uint32_t rounds;
  std::uint32_t throws_on;  // this worker, in the first round; none, for one that there is not
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.param(call)->bodies.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < rounds; ++i) {
      if (block.worker() == throws_on) throw std::runtime_error(kThrown);
      if (!block.grid_sync()) return;
    }
  }
};

/// One of a gang: stays until all have come.
struct Meet {
  Param<Call*> call;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    Call& mine = *block.param(call);
    mine.bodies.fetch_add(1, std::memory_order_relaxed);
    mine.met.fetch_add(1, std::memory_order_relaxed);
    while (mine.met.load(std::memory_order_relaxed) < (block.iteration() + 1) * count && !block.cancelled())
      std::this_thread::yield();
  }
};

/// Has operands when it is compiled; packing them may throw.
struct Packed {
  Param<Call*> call;
  std::uint32_t bytes;
  bool throws;
  std::uint32_t operand_bytes() const { return bytes; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    if (throws) throw std::runtime_error(kThrown);
    block.for_each(static_cast<int>(bytes), [&](int i) { to[i] = static_cast<unsigned char>(i); });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.param(call)->bodies.fetch_add(1, std::memory_order_relaxed);
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    while (operands.consumer_wait()) operands.consumer_release();
    (*this)(block);
  }
};

/// Names its buffer.
struct Checked {
  Param<Call*> call;
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.param(call)->bodies.fetch_add(1, std::memory_order_relaxed);
    std::atomic_ref(*word).fetch_add(1, std::memory_order_relaxed);
  }
  template <class F>
  void buffers(F&& f) const {
    f("word", word);
  }
};

/// Spawned by Alone, and one of a mixed batch.
struct AloneLeaf {
  Call* call;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    call->bodies.fetch_add(1, std::memory_order_relaxed);
  }
};

/// A task without a graph.
struct Alone {
  Call* call;
  std::uint64_t in;
  std::uint64_t adds;
  Special special;
  std::uint32_t argument;

  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    call->bodies.fetch_add(1, std::memory_order_relaxed);
    be_special(block, special, argument, *call, AloneLeaf{call});
    return in * 7 + adds;
  }
};

struct FromCallback : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What Graph::add() asks of it throws: buffers(), or cost_ns().
struct Raiser {
  Param<Call*> call;
  bool from_buffers;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block&) const {
    return 0;
  }
  template <class F>
  void buffers(F&& f) const {
    f("call", this);
    if (from_buffers) throw FromCallback("buffers()");
  }
  double cost_ns() const {
    if (!from_buffers) throw FromCallback("cost_ns()");
    return 1;
  }
};

/// No runtime knows it.
struct Stranger {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

inline const KernelEntry& all_tasks() {
  return kernel_entry<Leaf, Step, Grid, Meet, Packed, Checked, Raiser, AloneLeaf, Alone>();
}

}  // namespace flywheel::abuse
