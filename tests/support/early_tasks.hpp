// Early tasks and the stamped words they send each other, in stages that each depend on all of the one before.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/atomics.hpp"

namespace flywheel::testing {

struct EarlyNotes {
  std::uint32_t wrong, computes, checks;
};

/// TaskSlot s of a graph has `width` words: each depends on all of the stage before.
struct Layer {
  const Stamped* in;  // null: the first stage
  Stamped* out;
  std::uint32_t width, seed;

  FLYWHEEL_TASK static std::uint32_t value(std::uint32_t sum_before, std::uint32_t seed, std::uint32_t task,
                                           std::uint32_t pass) {
    return static_cast<std::uint32_t>(mix(mix(sum_before, seed), std::uint64_t{task} << 32 | pass));
  }

  /// A warp: what the stage before has put in this pass, added up.
  template <class Block>
  FLYWHEEL_TASK std::uint32_t sum(const Block& block) const {
    if (!in) return 0;
    const auto lane = static_cast<std::uint32_t>(block.lane());
    Stamped word{};
    block.spin([&] {
      if (lane < width) word = look_at(in[lane]);
      return lane >= width || word.stamp() == block.stamp();
    });
    std::uint32_t sum = lane < width ? word.bits() : 0;
    for (int apart = 16; apart; apart /= 2) sum += block.shuffle_xor(sum, apart);
    return sum;
  }
};

enum class Fails { never, before_it_sends, after_it_has_sent };

/// Sends from its compute part. An impatient one looks for its words from the start: their stamps alone tell, and if a task
/// before it has failed, it goes on with what it has found.
struct Direct {
  static constexpr bool kEarly = true;
  Layer layer;
  std::uint32_t task, fail_at;
  Fails fails;
  bool impatient;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!impatient && !block.await_sent()) return;
    const std::uint32_t sum = layer.sum(block);
    block.sync();
    if (!block.leader()) return;
    const bool now = block.iteration() == fail_at;
    if (now && fails == Fails::before_it_sends) return block.fail(1);
    put_stamped(layer.out[task], Layer::value(sum, layer.seed, task, block.iteration()), block.stamp());
    block.sent();
    add_to(notes->computes, 1u);
    if (now && fails == Fails::after_it_has_sent) block.fail(2);
  }
};

/// Sends from its store part.
struct Stored {
  static constexpr bool kEarly = true;
  Layer layer;
  std::uint32_t task;
  bool impatient;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!impatient && !block.await_sent()) return;
    const std::uint32_t sum = layer.sum(block);
    block.template producer_acquire<std::uint32_t>()[block.rank()] = sum;
    block.producer_commit();
  }
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    const auto* sums = block.template consumer_wait<std::uint32_t>();
    if (!sums) return;
    std::uint32_t differ = 0;
    for (int i = block.rank(); i < 256; i += block.size()) differ += sums[i] != sums[0];
    const bool sent = block.await_sent();  // warps of a task called off may have found different words
    if (differ && sent) add_to(notes->wrong, differ);
    if (block.leader()) put_stamped(layer.out[task], Layer::value(sums[0], layer.seed, task, block.iteration()), block.stamp());
    block.consumer_release();
    block.sent();
    if (block.leader()) add_to(notes->computes, 1u);
  }
};

/// Begins early, and waits until all before it is done, because it signals nothing and reads what is not stamped.
struct Late {
  static constexpr bool kEarly = true;
  const std::uint32_t* plain;
  std::uint32_t* count;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!block.await() || !block.leader()) return;
    if (*plain != block.iteration() + 7) add_to(notes->wrong, 1u);
    ++*count;
  }
};
struct Plain {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) *word = block.iteration() + 7;
  }
};

/// After the last stage: whether all is as a plain loop has it.
struct Collect {
  const Stamped* out;
  std::uint32_t width, stages, seed;
  EarlyNotes* notes;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    std::uint32_t sum = 0, wrong = 0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      std::uint32_t next = 0;
      for (std::uint32_t t = 0; t < width; ++t) next += Layer::value(sum, seed + s, t, block.iteration());
      if (s + 1 == stages)
        for (std::uint32_t t = 0; t < width; ++t) wrong += out[t].bits() != Layer::value(sum, seed + s, t, block.iteration());
      sum = next;
    }
    if (wrong) add_to(notes->wrong, wrong);
    add_to(notes->checks, 1u);
  }
};

struct Shape {
  std::uint32_t stages, width;
  std::uint32_t workers_used = ~0u;  // tasks are placed on the first of them
  std::uint32_t fail_at = ~0u;
  Fails fails = Fails::never;
};

/// Stages of both kinds in turn. Graphs made of the same words run one after the other.
struct EarlyGraph {
  EarlyGraph(Runtime& runtime, const Buffer<Stamped>& words, const Shape& shape, std::uint32_t seed)
      : notes(runtime.allocate<EarlyNotes>(1)) {
    After before;
    for (std::uint32_t s = 0; s < shape.stages; ++s) {
      const Layer layer{s ? words.data() + (s - 1) * shape.width : nullptr, words.data() + s * shape.width, shape.width,
                        seed + s};
      After stage;
      for (std::uint32_t t = 0; t < shape.width; ++t) {
        const bool fails = s == shape.stages / 2 && t == shape.width / 2, impatient = (s + t) % 2 == 0;
        const auto task =
            (s + seed) % 2 && !fails
                ? graph.add(Stored{layer, t, impatient, notes.data()}, before)
                : graph.add(Direct{layer, t, fails ? shape.fail_at : ~0u, shape.fails, impatient, notes.data()}, before);
        if (shape.workers_used != ~0u) graph.place(task, t % shape.workers_used);
        stage.add(task);
      }
      before = stage;
    }
    graph.add(Collect{words.data() + (shape.stages - 1) * shape.width, shape.width, shape.stages, seed, notes.data()}, before);
  }
  EarlyNotes seen() const { return notes.read()[0]; }

  Graph graph;
  Buffer<EarlyNotes> notes;
};

}  // namespace flywheel::testing
