// A task that takes its operands as it should, but in one pass makes a mistake; and what each mistake is called.
#pragma once

#include "support/compiled_soak.hpp"
#include "support/expect.hpp"

namespace flywheel::testing {

enum class Mistake : std::uint32_t {
  none,
  keeps_one,      // of the pages that consumer_wait() gave
  gives_another,  // a page more than it has taken
  takes_another,  // asks again after the last page
  hoards,         // takes more pages than there are places, and gives none back
  // Of tasks that hand over; on the GPU.
  passes_unasked,  // without producer_acquire()
  hands_unevenly,  // one warp once less
  stores_twice,    // gives back a handoff once more
  hands_borrowed,  // hands over after borrow_handoffs()
  renews,          // calls renew() when it has taken a page
};

inline Status status_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::keeps_one:
      return Status::operands_kept;
    case Mistake::gives_another:
      return Status::operands_overdrawn;
    case Mistake::takes_another:
      return Status::operands_overrun;
    case Mistake::hoards:
      return Status::operands_hoarded;
    case Mistake::passes_unasked:
    case Mistake::hands_unevenly:
    case Mistake::stores_twice:
    case Mistake::hands_borrowed:
      return Status::handoffs_mismatched;
    case Mistake::renews:
      return Status::operands_renewed;
    default:
      return Status::ok;
  }
}

struct Mistaken {
  OperandNotes* notes;
  std::uint32_t seed, bytes;
  Mistake mistake;
  std::uint32_t pass;  // in which it makes it

  std::uint32_t operand_bytes() const { return bytes; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(bytes), [&](int i) { to[i] = operand_byte(seed, static_cast<std::uint32_t>(i)); });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}

  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    const Mistake now = block.iteration() == pass ? mistake : Mistake::none;
    walk(block, operands, now);
    if (now == Mistake::takes_another && !operands.consumer_wait()) operands.consumer_wait();
    if constexpr (Block::kOnGpu) hand_over(block, now);
    if (block.leader()) add_to(notes->computes, 1u);
  }

  /// Each handoff holds the number of the pass.
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    std::uint32_t wrong = 0;
    while (const auto* words = block.template consumer_wait<std::uint32_t>()) {
      for (int i = block.rank(); i < 32; i += block.size()) wrong += words[i] != block.iteration();
      block.consumer_release();
    }
    if (block.iteration() == pass && mistake == Mistake::stores_twice) block.consumer_release();
    if (wrong && block.iteration() != pass) add_to(notes->wrong, wrong);
  }

 private:
  static constexpr std::uint32_t kHandedOver = 3;

  template <class Block>
  FLYWHEEL_TASK void check(Block& block, const unsigned char* page, std::uint32_t at) const {
    constexpr std::uint32_t kLanes = Block::kOnGpu ? 32 : 1;
    std::uint32_t wrong = 0;
    for (std::uint32_t i = static_cast<std::uint32_t>(block.rank()) % kLanes; i < kPageBytes && at + i < bytes; i += kLanes)
      wrong += page[i] != operand_byte(seed, at + i);
    if (wrong && block.iteration() != pass) add_to(notes->wrong, wrong);
  }

  template <class Block, class Operands>
  FLYWHEEL_TASK void walk(Block& block, Operands& operands, Mistake now) const {
    std::uint32_t at = 0;
    for (const unsigned char* page; (page = operands.consumer_wait()); at += kPageBytes) {
      check(block, page, at);
      if (now == Mistake::hoards || (now == Mistake::keeps_one && !at)) continue;
      operands.consumer_release();
      if constexpr (Block::kOnGpu)
        if (now == Mistake::renews) operands.renew();
    }
    if (now == Mistake::gives_another) operands.consumer_release();
  }
  template <class Block>
  FLYWHEEL_TASK void hand_over(Block& block, Mistake now) const {
    if (now == Mistake::hands_borrowed) block.borrow_handoffs();
    const std::uint32_t count = kHandedOver - (now == Mistake::hands_unevenly && block.warp() == 3);
    for (std::uint32_t i = 0; i < count; ++i) {
      auto* words = block.template producer_acquire<std::uint32_t>();
      if (block.warp() == 0) words[block.lane()] = block.iteration();
      block.producer_commit();
    }
    if (now == Mistake::passes_unasked) block.producer_commit();
  }
};

/// Runs a graph in which one task of many makes the mistake in its second pass, again and again: it fails by name, what
/// waits for it does not run, and other runs find all their operands.
inline void check_mistake(Runtime& runtime, Mistake mistake, std::uint32_t bytes) {
  INFO("mistake " << static_cast<int>(mistake) << ", " << bytes << " bytes");
  const auto notes = runtime.allocate<OperandNotes>(1);
  OperandRuns clean(runtime, 12, Walk::late, 20);
  Graph graph;
  for (std::uint32_t i = 0; i < 5; ++i) graph.add(Mistaken{notes.data(), i, 40'000, Mistake::none, 1});
  const auto bad = graph.add(Mistaken{notes.data(), 7, bytes, mistake, 1});
  for (std::uint32_t i = 0; i < 5; ++i) graph.add(Mistaken{notes.data(), i, 70'000, Mistake::none, 1}, after(bad));
  const Executable executable = runtime.load(graph, compiled);
  for (int round = 0; round < 3; ++round) {
    CHECK(runtime.submit(executable).status() == Status::ok);
    Run run = runtime.submit(executable, repeat(3));
    REQUIRE(run.status() == status_of(mistake));
    CHECK(run.iterations() == 1);
    check_says(error_of<RunError>([&] { run.wait(); }), {describe(status_of(mistake)).what, "task 5", "Mistaken", "Remedy"});
    clean.submit(2).wait();
  }
  CHECK(notes.read()[0].wrong == 0);
  clean.check();
}

/// All of them, on a runtime of 3 pages a worker that checks.
inline void check_mistakes(Runtime& runtime) {
  for (const Mistake mistake : {Mistake::keeps_one, Mistake::gives_another, Mistake::takes_another, Mistake::passes_unasked,
                                Mistake::hands_unevenly, Mistake::stores_twice, Mistake::hands_borrowed, Mistake::renews})
    for (const std::uint32_t bytes : {1u, 70'000u}) check_mistake(runtime, mistake, bytes);
  check_mistake(runtime, Mistake::hoards, 5 * kPageBytes);
  check_mistake(runtime, Mistake::takes_another, 0);
}

}  // namespace flywheel::testing
