// Tasks whose operands other tasks write, and stages of such.
#pragma once

#include "support/compiled_tasks.hpp"

namespace flywheel::testing {

/// Writes words that tell the pass they were written in.
struct Write {
  std::uint32_t* to;
  std::uint32_t count, seed;
  std::uint32_t fail_at = ~0u;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(static_cast<int>(count), [&](int i) { to[i] = word(seed, i, block.iteration()); });
    if (block.leader() && block.iteration() == fail_at) block.fail(1);
  }
  FLYWHEEL_TASK static std::uint32_t word(std::uint32_t seed, int i, std::uint32_t pass) {
    return static_cast<std::uint32_t>(mix(mix(seed, static_cast<std::uint64_t>(i)), pass));
  }
};

/// Every warp checks constants and then pieces that other tasks wrote in this pass.
struct Check {
  const std::uint32_t* pieces[2];
  std::uint32_t counts[2];  // words; multiples of 4
  std::uint32_t seed;       // of piece i: seed + i
  std::uint32_t constants;  // bytes
  OperandNotes* notes;
  const std::uint32_t* more = nullptr;  // null, or a word that says how many pieces it names besides

  std::uint32_t operand_bytes() const { return constants; }
  std::uint32_t dependent_pages() const { return pages_of(counts[0] * 4) + pages_of(counts[1] * 4); }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (int i = 0; i < 2; ++i) fetch(pieces[i], counts[i] * 4);
    for (std::uint32_t i = 0; more && i < *more; ++i) fetch(pieces[0], 16u);
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(constants), [&](int i) { to[i] = operand_byte(seed, static_cast<std::uint32_t>(i)); });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    std::uint32_t wrong = 0;
    each_page(operands, constants, [&](const unsigned char* page, std::uint32_t at, std::uint32_t n) {
      for (auto i = static_cast<std::uint32_t>(block.lane()); i < n; i += 32) wrong += page[i] != operand_byte(seed, at + i);
    });
    for (std::uint32_t p = 0; p < 2; ++p)
      each_page(operands, counts[p] * 4, [&](const unsigned char* page, std::uint32_t at, std::uint32_t n) {
        const auto* words = reinterpret_cast<const std::uint32_t*>(page);
        for (auto i = static_cast<std::uint32_t>(block.lane()); i < n / 4; i += 32)
          wrong += words[i] != Write::word(seed + p, static_cast<int>(at / 4 + i), block.iteration());
      });
    wrong += operands.consumer_wait() != nullptr;
    if (wrong) add_to(notes->wrong, wrong);
    if (block.leader()) add_to(notes->computes, 1u);
  }

 private:
  template <class Operands, class Use>
  FLYWHEEL_TASK void each_page(Operands& operands, std::uint32_t bytes, Use&& use) const {
    for (std::uint32_t at = 0; at < bytes; at += kPageBytes) {
      const unsigned char* page = operands.consumer_wait();
      if (!page) {
        add_to(notes->wrong, 1u);
        return;
      }
      use(page, at, bytes - at < kPageBytes ? bytes - at : kPageBytes);
      operands.consumer_release();
    }
  }
};

/// Stages of writers and checkers, so that several tasks of a worker have dependent operands at once.
struct Stages {
  Stages(Runtime& runtime, std::uint32_t stages, std::uint32_t most_words, std::uint32_t fail_at = ~0u)
      : notes(runtime.allocate<OperandNotes>(1)) {
    for (std::uint32_t s = 0; s < stages; ++s) {
      const std::uint32_t counts[2] = {4 + s * 1237 % most_words / 4 * 4, 4 + s * 3571 % most_words / 4 * 4};
      After written;
      for (std::uint32_t p = 0; p < 2; ++p) {
        words.push_back(runtime.allocate<std::uint32_t>(counts[p]));
        const auto task = graph.add(Write{words.back().data(), counts[p], 10 * s + p, s == stages / 2 ? fail_at : ~0u});
        written.add(task);
      }
      checks.push_back(
          {{words[2 * s].data(), words[2 * s + 1].data()}, {counts[0], counts[1]}, 10 * s, s * 4999 % 40'000, notes.data()});
      graph.add(checks.back(), written);
    }
  }
  Graph graph;
  std::vector<Buffer<std::uint32_t>> words;
  std::vector<Check> checks;  // task 3 s + 2 is that of stage s
  Buffer<OperandNotes> notes;
};

}  // namespace flywheel::testing
