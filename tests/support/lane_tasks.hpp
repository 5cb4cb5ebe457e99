// Tasks that ask every block for what it knows of lanes and warps. They run on CPU workers, on the emulated GPU and on GPUs.
#pragma once

#include "catch.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

/// The next lane's value, the one after the last being the first; by shuffle_xor() and by shuffle(). How often it was not
/// what the rank says.
template <class Block>
FLYWHEEL_TASK std::uint32_t wrong_exchanges(Block& block) {
  const int next = (block.lane() + 1) % Block::kLanes, first = block.warp() * Block::kLanes;
  std::uint32_t wrong = block.shuffle(block.rank(), next) != first + next;
  wrong += block.shuffle(block.rank(), Block::kLanes) != first;  // modulo kLanes
  if constexpr (Block::kOnGpu) wrong += block.shuffle_xor(block.rank(), 5) != (block.rank() ^ 5);
  return wrong;
}

/// How often the calling thread was told something wrong about its place, or did not see its neighbour's word. `words`: one
/// for each thread of the block.
template <class Block>
FLYWHEEL_TASK std::uint32_t wrong_of_lane(Block& block, std::uint32_t* words) {
  const int rank = block.rank(), next = (block.lane() + 1) % Block::kLanes;
  std::uint32_t wrong = rank != block.warp() * Block::kLanes + block.lane();
  wrong += block.lane() >= Block::kLanes || block.warp() >= Block::kWarps;
  wrong += block.size() != Block::kWarps * Block::kLanes || block.leader() != (rank == 0);
  words[rank] = static_cast<std::uint32_t>(rank) + 7;
  block.sync_warp();
  wrong += words[rank - block.lane() + next] != static_cast<std::uint32_t>(rank - block.lane() + next) + 7;
  return wrong + wrong_exchanges(block);
}

/// Returns how many threads were told something wrong, plus 1000 times the threads that did not take part.
struct Lanes {
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    auto* words = block.template scratch<std::uint32_t>(block.size());
    if (!words) return ~0u;
    const std::uint32_t wrong = wrong_of_lane(block, words);
    const auto sum = [](std::uint32_t a, std::uint32_t b) { return a + b; };
    const auto size = static_cast<std::uint32_t>(block.size());
    return block.reduce(wrong, sum) + 1000 * (size - block.reduce(1u, sum));
  }
};

/// The same in a compute and a store part. The store part uses global memory: it has no scratch.
struct StoredLanes {
  std::uint32_t* counts;  // [0]: what was wrong, [1]: compute parts, or bodies, [2]: store parts
  std::uint32_t* words;   // 32, of this task alone

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t wrong = Lanes()(block);
    if (!block.leader()) return;
    add_to(counts[0], wrong);
    add_to(counts[1], 1u);
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    operator()(block);
    block.template producer_acquire<std::uint32_t>();
    block.producer_commit();
  }
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    while (block.template consumer_wait<std::uint32_t>()) block.consumer_release();
    const std::uint32_t wrong =
        block.reduce(wrong_of_lane(block, words), [](std::uint32_t a, std::uint32_t b) { return a + b; });
    if (!block.leader()) return;
    add_to(counts[0], wrong);
    add_to(counts[2], 1u);
  }
};

/// Runs both on `runtime`, as a dynamic and as a compiled graph.
inline void check_lanes(Runtime& runtime) {
  constexpr std::uint32_t kTasks = 40, kPasses = 3;
  Buffer<std::uint32_t> counts = runtime.allocate<std::uint32_t>(3), words = runtime.allocate<std::uint32_t>(32 * kTasks);
  Graph graph;
  const auto alone = graph.add(Lanes{});
  for (std::uint32_t i = 0; i < kTasks; ++i) graph.add(StoredLanes{counts.data(), words.data() + 32 * i});
  Run dynamic = runtime.submit(runtime.load(graph));
  CHECK(dynamic.get(alone) == 0);
  CHECK(counts.read() == std::vector<std::uint32_t>{0, kTasks, 0});
  Run compiled_run = runtime.submit(runtime.load(graph, compiled), repeat(kPasses));
  CHECK(compiled_run.get(alone) == 0);
  CHECK(counts.read() == std::vector<std::uint32_t>{0, (1 + kPasses) * kTasks, runtime.on_gpu() ? kPasses * kTasks : 0});
}

}  // namespace flywheel::testing
