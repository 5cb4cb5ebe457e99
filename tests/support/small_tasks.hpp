// Small task types, one for each thing a task can do, and a runtime that knows them all.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/atomics.hpp"

namespace flywheel::testing {

/// *word += 1.
struct Count {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) add_to(*word, 1u);
  }
  template <class F>
  void buffers(F&& f) const {
    f("word", word);
  }
};

struct Square {
  std::uint32_t x;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block&) const {
    return std::uint64_t{x} * x;
  }
};

/// The squares of `count` numbers from `first` on.
inline std::vector<Square> squares_from(std::uint32_t first, std::size_t count) {
  std::vector<Square> tasks(count);
  for (std::size_t i = 0; i < count; ++i) tasks[i].x = first + static_cast<std::uint32_t>(i);
  return tasks;
}

/// Returns the parameter's value.
struct Read {
  Param<std::uint64_t> param;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    return block.param(param);
  }
};

struct Load {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block&) const {
    return peek_at(*word);
  }
};

struct Fail {
  std::uint32_t code;
  std::uint32_t pass;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader() && block.iteration() == pass) block.fail(code);
  }
};

/// Counts itself as running, and stays until the test opens the gate or cancels the run.
struct Gate {
  std::uint32_t* entered;
  std::uint32_t* open;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      add_to(*entered, 1u);
      while (!peek_at(*open) && !block.cancelled()) {}
    }
    block.sync();
  }
};

/// Looks until as many workers are idle as must be while `busy` others have a task that does not end. Returns how many there
/// are, and how many there must be.
struct LookForIdle {
  std::uint32_t busy;
  struct Seen {
    std::uint32_t idle, wanted;
  };
  template <class Block>
  FLYWHEEL_TASK Seen operator()(Block& block) const {
    // The worker beside the inbox poller is none of them, whether it is idle or runs this task.
    const std::uint32_t others = block.workers() - 1 - busy, wanted = others - (others && block.worker() != 0);
    std::uint32_t idle = block.idle_workers();
    for (std::uint32_t looks = 0; idle != wanted && looks < 50'000'000 && !block.cancelled(); ++looks)
      idle = block.idle_workers();
    return {idle, wanted};
  }
};

/// Stays until all `count` of a gang have come, in each pass.
struct Meet {
  std::uint32_t* come;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      add_to(*come, 1u);
      while (peek_at(*come) < (block.iteration() + 1) * count && !block.cancelled()) {}
    }
    block.sync();
  }
};

/// Like Gate, but deaf to cancellation.
struct Deaf {
  std::uint32_t* entered;
  std::uint32_t* open;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      add_to(*entered, 1u);
      while (!peek_at(*open)) {}
    }
    block.sync();
  }
};

/// Streams first, first + 1, ...
struct EmitRange {
  std::uint32_t first;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    for (std::uint32_t i = 0; i < count; ++i) block.emit(first + block.iteration() * count + i);
  }
};

/// Writes its number down in the order in which tasks come.
struct Log {
  std::uint32_t* cursor;
  std::uint32_t* log;
  std::uint32_t number;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) log[add_to(*cursor, 1u)] = number;
  }
};

/// Adds the n-th Fibonacci number to *sum, with a task for each call of the recursion.
struct Fibonacci {
  std::uint32_t n;
  std::uint64_t* sum;
  std::uint32_t* calls;

  FLYWHEEL_TASK static constexpr std::uint64_t value(std::uint32_t n) {
    std::uint64_t a = 0, b = 1;
    for (; n; --n) {
      const std::uint64_t next = a + b;
      a = b;
      b = next;
    }
    return a;
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) add_to(*calls, 1u);
    if (n < 2) {
      if (block.leader()) add_to(*sum, std::uint64_t{n});
      return;
    }
    block.for_each(2, [&](int i) {
      const std::uint32_t less = n - 1 - static_cast<std::uint32_t>(i);
      if (!block.spawn(Fibonacci{less, sum, calls})) add_to(*sum, value(less));
    });
  }
};

/// Ends a repeated run after pass `at`.
struct StopAt {
  std::uint32_t at;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader() && block.iteration() == at) block.stop();
  }
};

/// A grid task: in each round every worker writes its cell and, after the meeting, looks at all the others'.
struct Rounds {
  std::uint32_t* cells;  // one a worker
  std::uint32_t* wrong;  // [0]: cells that did not hold the round, [1]: rounds, counted by worker 0
  std::uint32_t rounds;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t r = 1; r <= rounds; ++r) {
      if (block.leader()) cells[block.worker()] = block.iteration() * rounds + r;
      if (!block.grid_sync()) return;
      block.for_each(static_cast<int>(block.workers()), [&](int w) {
        if (cells[w] != block.iteration() * rounds + r) add_to(wrong[0], 1u);
      });
      if (block.leader() && block.worker() == 0) add_to(wrong[1], 1u);
      if (!block.grid_sync()) return;
    }
  }
};

/// A grid task whose workers meet `usual` times, and one of them `own` times. It counts after each meeting.
struct MeetUnequally {
  std::uint32_t* words;  // one a worker
  std::uint32_t usual, who, own;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t r = 0; r < (block.worker() == who ? own : usual); ++r) {
      if (!block.grid_sync()) return;
      if (block.leader()) ++words[block.worker()];
    }
  }
};

/// Sums 0..n-1 through scratch memory and reduce(). Returns the sum, or 0 without scratch.
struct Reduce {
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    auto* numbers = block.template scratch<std::uint32_t>(static_cast<int>(n));
    if (!numbers) return 0;
    block.for_each(static_cast<int>(n),
                   [&](int i) { numbers[n - 1 - static_cast<std::uint32_t>(i)] = static_cast<std::uint32_t>(i); });
    block.sync();
    std::uint64_t sum = 0;
    block.for_each(static_cast<int>(n), [&](int i) { sum += numbers[i]; });
    return block.reduce(sum, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  }
};

/// Tries to spawn; returns whether it could.
struct TrySpawn {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    return block.leader() && block.spawn(Count{word}) ? 1u : 0u;
  }
};

inline Runtime small_runtime(const Options& options) {
  return start<Count, Square, Read, Load, Fail, Gate, Deaf, EmitRange, Log, Fibonacci, StopAt, Rounds, MeetUnequally, Reduce,
               TrySpawn, LookForIdle>(options);
}

}  // namespace flywheel::testing
