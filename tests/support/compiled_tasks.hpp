// Task types for compiled runs: operands that are checked byte by byte, and stages that each depend on all of
// the one before.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "runtime/compiled/operands.hpp"
#include "support/atomics.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

FLYWHEEL_TASK constexpr unsigned char operand_byte(std::uint32_t seed, std::uint32_t at) {
  return static_cast<unsigned char>(mix(seed, at / 8) >> at % 8 * 8);
}
/// The sum of a task's operand bytes, each times its place.
constexpr std::uint64_t operand_sum(std::uint32_t seed, std::uint32_t bytes) {
  std::uint64_t sum = 0;
  for (std::uint32_t at = 0; at < bytes; ++at) sum += std::uint64_t{operand_byte(seed, at)} * (at + 1);
  return sum;
}

/// What a compute part does with its pages.
enum class Walk : std::uint32_t {
  all,     // each page checked and given back
  none,    // takes no page
  half,    // takes half of them and gives those back
  hoards,  // gives none back: no more pages than the worker has
  late,    // takes two before it gives the first back
};

/// What the operand tasks of a test find.
struct OperandNotes {
  std::uint64_t sum;       // as operand_sum(); on the GPU, of kWarps warps
  std::uint32_t wrong;     // bytes, page counts or areas that were not as packed
  std::uint32_t computes;  // compute parts, counted by their first thread
  std::uint32_t stores;    // store parts; on the GPU
  std::uint32_t portable;  // bodies run by operator()
};

/// `bytes` of operands that each warp (on the CPU, the thread) checks in full. On the GPU what it sums goes
/// to the store part.
struct Packed {
  OperandNotes* notes;
  std::uint32_t seed;
  std::uint32_t bytes;
  Walk walk = Walk::all;
  std::uint32_t delay = 0;  // most turns that a warp waits before it gives a page back
  std::uint32_t fail_at = ~0u;

  std::uint32_t operand_bytes() const { return bytes; }

  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(bytes), [&](int i) { to[i] = operand_byte(seed, static_cast<std::uint32_t>(i)); });
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) add_to(notes->portable, 1u);
  }

  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    Walker<Block, Operands> walker{*this, block, operands};
    walker();
    if (walker.wrong) add_to(notes->wrong, walker.wrong);
    if (block.leader()) add_to(notes->computes, 1u);
    if (block.leader() && block.iteration() == fail_at) block.fail(seed);
  }

  /// GPU only: one handoff a page.
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    while (const auto* sums = block.template consumer_wait<std::uint64_t>()) {
      block.for_each(kThreads, [&](int thread) { add_to(notes->sum, sums[thread]); });
      block.consumer_release();
    }
    if (block.leader()) add_to(notes->stores, 1u);
  }

  static constexpr int kThreads = 256;  // that compute on the GPU; each of their warps sums all bytes
  static constexpr std::uint32_t kWarps = 8;

 private:
  template <class Block, class Operands>
  struct Walker {
    const Packed& task;
    Block& block;
    Operands& operands;
    std::uint32_t wrong = 0, at = 0, held = 0;

    FLYWHEEL_TASK void operator()() {
      const std::uint32_t all = pages_of(task.bytes);
      const std::uint32_t wanted = task.walk == Walk::none ? 0 : task.walk == Walk::half ? all / 2 : all + 1;
      std::uint32_t pages = 0;
      for (const unsigned char* page; pages < wanted && (page = operands.consumer_wait()); ++pages) {
        hand_over(check(page));
        ++held;
        if (task.walk == Walk::hoards || (task.walk == Walk::late && held < 2)) continue;
        consumer_release();
      }
      if (task.walk == Walk::late && held) consumer_release();
      wrong += wanted > all && pages != all;
    }
    FLYWHEEL_TASK void consumer_release() {
      spin();
      operands.consumer_release();
      --held;
    }
    FLYWHEEL_TASK std::uint64_t check(const unsigned char* page) {
      constexpr std::uint32_t kLanes = Block::kOnGpu ? 32 : 1;
      const std::uint32_t left = task.bytes - at, n = left < kPageBytes ? left : kPageBytes;
      std::uint64_t sum = 0;
      for (std::uint32_t i = static_cast<std::uint32_t>(block.rank()) % kLanes; i < n; i += kLanes) {
        wrong += page[i] != operand_byte(task.seed, at + i);
        sum += std::uint64_t{page[i]} * (at + i + 1);
      }
      at += n;
      return sum;
    }
    FLYWHEEL_TASK void hand_over(std::uint64_t sum) {
      if constexpr (Block::kOnGpu) {
        if (auto* sums = block.template producer_acquire<std::uint64_t>()) sums[block.rank()] = sum;
        block.producer_commit();
      } else {
        add_to(task.notes->sum, sum);
      }
    }
    FLYWHEEL_TASK void spin() const {
      if (!task.delay) return;
      const auto warp = static_cast<std::uint32_t>(block.rank()) / 32;
      const std::uint64_t turns = mix(mix(task.seed, block.iteration()), at + warp) % task.delay;
      std::uint64_t x = 1;
      for (std::uint64_t i = 0; i < turns; ++i) x = mix(x, i);
      if (x == 0) add_to(task.notes->wrong, 1u);
    }
  };
};

/// GPU only. Hands nothing over, and uses `bytes` of scratch and of the places of handoffs: threads read what others wrote.
struct Borrowing {
  OperandNotes* notes;
  std::uint32_t number;
  std::uint32_t bytes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.sync();  // all threads are through with the last task's scratch
    block.borrow_handoffs();
    block.borrow_handoffs();  // gives no more
    const int count = static_cast<int>(bytes / 4);
    auto* words = block.template scratch<std::uint32_t>(count);
    if (!words) return;
    const std::uint32_t salt = number + block.iteration();
    block.for_each(count, [&](int i) { words[i] = word(salt, i); });
    block.sync();
    block.for_each(count, [&](int i) {
      if (words[count - 1 - i] != word(salt, count - 1 - i)) add_to(notes->wrong, 1u);
    });
    block.sync();  // nobody hands over before all have read
    if (block.leader()) add_to(notes->computes, 1u);
  }
  FLYWHEEL_TASK static std::uint32_t word(std::uint32_t salt, int i) {
    return static_cast<std::uint32_t>(mix(salt, static_cast<std::uint64_t>(i)));
  }
};

/// A compute part that reduces once and ends without a barrier of its own: a fast warp is in the next task's
/// reduce() while a slow one still reads the results of this one's.
struct Summed {
  std::uint32_t* wrong;
  std::uint32_t number;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}

  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    const auto rank = static_cast<std::uint32_t>(block.rank());
    const std::uint32_t salt = number + block.iteration();
    const std::uint32_t sum = block.reduce(rank * salt, [](std::uint32_t a, std::uint32_t b) { return a + b; });
    const auto size = static_cast<std::uint32_t>(block.size());
    if (sum != size * (size - 1) / 2 * salt) add_to(*wrong, 1u);
  }
};

/// One of `width` tasks of a stage: a hash of all that the stage before wrote. Plain memory: only the run's
/// own order stands between its writer and its readers.
struct Mixer {
  const std::uint64_t* from;  // `width` words of the stage before
  std::uint64_t* to;
  std::uint32_t width;
  std::uint32_t index;
  std::uint32_t delay;  // most turns it waits before it reads, and before it writes

  FLYWHEEL_TASK static constexpr std::uint64_t part(std::uint64_t word, std::uint32_t i) { return mix(word, i); }
  FLYWHEEL_TASK static constexpr std::uint64_t value(std::uint64_t sum, std::uint32_t index, std::uint32_t pass) {
    return mix(sum, mix(index, pass));
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    spin(block, 1);
    std::uint64_t sum = 0;
    block.for_each(static_cast<int>(width), [&](int i) { sum += part(from[i], static_cast<std::uint32_t>(i)); });
    sum = block.reduce(sum, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    spin(block, 2);
    if (block.leader()) *to = value(sum, index, block.iteration());
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void spin(Block& block, std::uint32_t place) const {
    if (!delay) return;
    const std::uint64_t dice = mix(mix(index, block.iteration()), place);
    std::uint64_t x = 1;
    for (std::uint64_t i = 0; dice % 4 == 0 && i < dice / 4 % delay; ++i) x = mix(x, i);
    if (x == 0) block.fail(1);
  }
};

/// `stages` x `width` Mixers in a ring of two rows or more; what a run of `passes` leaves in the last row.
class MixerStages {
 public:
  MixerStages(std::uint32_t stages, std::uint32_t width) : stages_(stages), width_(width) {}

  std::size_t words() const { return std::size_t{stages_} * width_; }

  /// TaskSlot 0 reads what the last stage wrote in the pass before.
  Graph graph(std::uint64_t* rows, std::uint32_t delay) const {
    Graph graph;
    After before;
    for (std::uint32_t s = 0; s < stages_; ++s) {
      After stage;
      const std::uint64_t* from = rows + std::size_t{(s + stages_ - 1) % stages_} * width_;
      for (std::uint32_t i = 0; i < width_; ++i) {
        const auto task = graph.add(Mixer{from, rows + std::size_t{s} * width_ + i, width_, i + s * width_, delay}, before);
        stage.add(task);
      }
      before = stage;
    }
    return graph;
  }

  /// One run, done serially on the words as they are.
  void advance(std::vector<std::uint64_t>& rows, std::uint32_t passes) const {
    for (std::uint32_t pass = 0; pass < passes; ++pass)
      for (std::uint32_t s = 0; s < stages_; ++s) {
        const std::size_t from = std::size_t{(s + stages_ - 1) % stages_} * width_;
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < width_; ++i) sum += Mixer::part(rows[from + i], i);
        for (std::uint32_t i = 0; i < width_; ++i) rows[std::size_t{s} * width_ + i] = Mixer::value(sum, i + s * width_, pass);
      }
  }

 private:
  std::uint32_t stages_;
  std::uint32_t width_;
};

}  // namespace flywheel::testing
