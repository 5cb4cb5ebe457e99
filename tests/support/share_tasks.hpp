// A grid task whose workers share arrays out with share_of(), pass after pass, and the oracle: plain loops over a copy.
#pragma once

#include "catch.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// Two arrays of n elements. Each round changes y, adds it up, and changes x by what another worker may have written in y.
template <class T>
struct SharePasses {
  T *x, *y;
  std::uint64_t* sums;  // of each worker's shares
  std::uint32_t n, rounds;

  FLYWHEEL_TASK static T mixed(T a, T b) { return static_cast<T>(3 * a + b); }
  FLYWHEEL_TASK static T next(T b) { return static_cast<T>(5 * b + 1); }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto plus = [](std::uint64_t a, std::uint64_t b) { return a + b; };
    const auto wide = [](T value) { return std::uint64_t{value}; };
    std::uint64_t sum = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      block.stream(share_of(n, block), reads(x, y), writes(y), [](T a, T b) { return mixed(a, b); });
      if (!block.grid_sync()) return;
      sum += block.stream_reduce(share_of(n, block), reads(y), std::uint64_t{0}, plus, wide);
      block.stream(share_of(n, block), reads(y), writes(x), [](T b) { return next(b); });
      if (!block.grid_sync()) return;
    }
    if (block.leader()) sums[block.worker()] = sum;
  }
};
using WordShares = SharePasses<std::uint32_t>;
using ByteShares = SharePasses<std::uint8_t>;

/// `arrays` arrays of n elements, one behind the other: passes over each that depend on none of the others, so that workers are
/// in different ones; and then all again. One worker may fail in a round.
struct ShareRows {
  std::uint32_t* x;
  std::uint32_t n, arrays, rounds, fails_in;  // the round; kNever: none

  static constexpr std::uint32_t kNever = ~0u;
  FLYWHEEL_TASK static std::uint32_t next(std::uint32_t value) { return 5 * value + 1; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < arrays; ++i) {
        std::uint32_t* const mine = x + std::size_t{i} * n;
        block.stream(share_of(n, block), reads(mine), writes(mine), [](std::uint32_t value) { return next(value); });
      }
      if (round == fails_in && block.worker() == 0 && block.leader()) block.fail(7);
      if (!block.grid_sync()) return;
    }
  }
};

/// Runs that follow one another, every other of which ends early, and the oracle: a plain loop. Words behind the last array
/// stay as they are.
inline void check_share_rows(Runtime& runtime, std::uint64_t seed, std::uint32_t most) {
  Random random(seed);
  const std::uint32_t n = pick(random, most / 2, most) / 4 * 4, arrays = pick(random, 1, 12), rounds = pick(random, 1, 3);
  std::vector<std::uint32_t> words(std::size_t{n} * arrays + 8);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  const auto there = runtime.upload(words);
  const auto load = [&](std::uint32_t fails_in) {
    Graph graph;
    graph.add_grid(ShareRows{there.data(), n, arrays, rounds, fails_in});
    return runtime.load(graph);
  };
  const Executable whole = load(ShareRows::kNever), first_fails = load(0);
  std::uint32_t passes = 0;
  for (int i = 0; i < 3; ++i) {
    runtime.submit(whole).wait();
    CHECK(runtime.submit(first_fails).status() == Status::task_failed);
    passes += rounds + 1;
  }
  for (std::size_t i = 0; i < std::size_t{n} * arrays; ++i)
    for (std::uint32_t pass = 0; pass < passes; ++pass) words[i] = ShareRows::next(words[i]);
  INFO(arrays << " arrays of " << n << " words, " << rounds << " rounds");
  REQUIRE(there.read() == words);
}

/// n elements, the second array `x_ahead` and `y_ahead` elements behind an aligned place.
template <class T>
void check_shares(Runtime& runtime, Random& random, std::uint32_t n, std::uint32_t x_ahead, std::uint32_t y_ahead) {
  std::vector<T> x(n + x_ahead), y(n + y_ahead);
  for (T& value : x) value = static_cast<T>(random());
  for (T& value : y) value = static_cast<T>(random());
  const auto x_there = runtime.upload(x), y_there = runtime.upload(y);
  const auto sums = runtime.upload(std::vector<std::uint64_t>(runtime.workers(), ~std::uint64_t{0}));
  constexpr std::uint32_t kRounds = 2;
  Graph graph;
  graph.add_grid(SharePasses<T>{x_there.data() + x_ahead, y_there.data() + y_ahead, sums.data(), n, kRounds});
  runtime.submit(runtime.load(graph)).wait();

  std::uint64_t want = 0, found = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round)
    for (std::uint32_t i = 0; i < n; ++i) {
      T &a = x[x_ahead + i], &b = y[y_ahead + i];
      b = SharePasses<T>::mixed(a, b);
      want += b;
      a = SharePasses<T>::next(b);
    }
  for (const std::uint64_t sum : sums.read()) found += sum;
  INFO(n << " elements of " << sizeof(T) << " bytes, " << x_ahead << " and " << y_ahead << " behind an aligned place");
  REQUIRE(x_there.read() == x);
  REQUIRE(y_there.read() == y);
  REQUIRE(found == want);
}

/// Random sizes up to `most`, aligned alike and not, and `most` itself.
inline void check_shares(Runtime& runtime, std::uint64_t seed, int times, std::uint32_t most) {
  Random random(seed);
  for (int time = 0; time < times; ++time) {
    const std::uint32_t n = time == 0 ? most : pick(random, 0, pick(random, 0, 2) ? 5'000 : most);
    const std::uint32_t x_ahead = pick(random, 0, 1) * pick(random, 0, 40), off = pick(random, 0, 1) * 16;
    const std::uint32_t y_ahead = pick(random, 0, 3) ? x_ahead + off : pick(random, 0, 40);
    if (pick(random, 0, 2)) check_shares<std::uint32_t>(runtime, random, n, x_ahead, y_ahead);
    else check_shares<std::uint8_t>(runtime, random, n, x_ahead, y_ahead);
  }
}

}  // namespace flywheel::testing
