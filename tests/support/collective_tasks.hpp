// Tasks that make collective calls in a random order, and the oracle: what each thread has been told, from plain loops. They
// run on CPU workers, on the emulated GPU and on GPUs.
#pragma once

#include "catch.hpp"
#include "support/exchanged_values.hpp"
#include "support/seed.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

enum class Call : std::uint32_t {
  sync,
  sync_warp,
  reduce,
  count,
  any,
  all,
  ballot,
  any_warp,
  all_warp,
  inclusive,
  exclusive,
  broadcast
};

/// One call of all threads of a block, drawn from `bits`. Scans and broadcasts are half of all.
struct CollectiveCall {
  std::uint64_t bits;

  FLYWHEEL_TASK Call what() const {
    const auto drawn = static_cast<std::uint32_t>(bits % 18);
    return static_cast<Call>(drawn < 9 ? drawn : 9 + drawn % 3);
  }
  FLYWHEEL_TASK std::uint32_t type() const { return static_cast<std::uint32_t>(bits >> 8 & 0xffff); }
  FLYWHEEL_TASK int from() const { return static_cast<int>(bits >> 24 & 0x3ff); }
  FLYWHEEL_TASK std::uint64_t of(int rank) const { return mix(bits, static_cast<std::uint64_t>(rank)); }
  /// Of all threads, none, all but one, or any.
  FLYWHEEL_TASK bool vote(int rank) const {
    const std::uint32_t pattern = bits >> 40 & 3;
    if (pattern == 2) return rank != from() % 256;
    return pattern == 3 ? of(rank) & 1 : pattern == 1;
  }
};

/// What the calling thread is told.
template <class Block>
FLYWHEEL_TASK std::uint64_t pass_values(Block& block, const CollectiveCall& call) {
  std::uint64_t told = 0;
  ExchangedTypes::visit(call.type(), [&](auto type) {
    using T = decltype(type);
    const T mine = T::of(call.of(block.rank()));
    if (call.what() == Call::inclusive) told = hash_of(block.inclusive_scan(mine, Then{}));
    else if (call.what() == Call::exclusive) told = hash_of(block.exclusive_scan(mine, Then{}, T::of(call.bits)));
    else told = hash_of(block.broadcast(mine, call.from()));
  });
  return told;
}
template <class Block>
FLYWHEEL_TASK std::uint64_t make_call(Block& block, const CollectiveCall& call) {
  const bool vote = call.vote(block.rank());
  switch (call.what()) {
    case Call::sync:
      return block.sync(), 0;
    case Call::sync_warp:
      return block.sync_warp(), 0;
    case Call::reduce:
      return block.reduce(call.of(block.rank()), [](auto a, auto b) { return a + b; });
    case Call::count:
      return static_cast<std::uint64_t>(block.count(vote));
    case Call::any:
      return block.any(vote);
    case Call::all:
      return block.all(vote);
    case Call::ballot:
      return block.ballot(vote);
    case Call::any_warp:
      return block.any_warp(vote);
    case Call::all_warp:
      return block.all_warp(vote);
    default:
      return pass_values(block, call);
  }
}
/// `calls` of them, one after the other.
template <class Block>
FLYWHEEL_TASK std::uint64_t make_calls(Block& block, std::uint64_t seed, int calls) {
  std::uint64_t told = 0;
  for (int i = 0; i < calls; ++i) told = mix(told, make_call(block, {mix(seed, static_cast<std::uint64_t>(i))}));
  return told;
}

/// What the threads of a block with so many threads and lanes a warp are told.
class CollectiveOracle {
 public:
  CollectiveOracle(int size, int lanes) : size_(size), lanes_(lanes) {}

  std::vector<std::uint64_t> calls(std::uint64_t seed, int calls) const {
    std::vector<std::uint64_t> told(static_cast<std::size_t>(size_));
    for (int i = 0; i < calls; ++i) {
      const std::vector<std::uint64_t> each = one({mix(seed, static_cast<std::uint64_t>(i))});
      for (std::size_t r = 0; r < told.size(); ++r) told[r] = mix(told[r], each[r]);
    }
    return told;
  }

 private:
  std::vector<std::uint64_t> one(const CollectiveCall& call) const {
    if (call.what() >= Call::inclusive) return exchanged(call);
    std::vector<std::uint64_t> told;
    for (int rank = 0; rank < size_; ++rank) told.push_back(voted(call, rank));
    return told;
  }
  std::uint64_t voted(const CollectiveCall& call, int rank) const {
    std::uint64_t sum = 0, ballot = 0;
    int votes = 0, votes_of_warp = 0;
    const int first = rank - rank % lanes_;
    for (int r = 0; r < size_; ++r) sum += call.of(r), votes += call.vote(r);
    for (int l = 0; l < lanes_; ++l) ballot |= std::uint64_t{call.vote(first + l)} << l, votes_of_warp += call.vote(first + l);
    switch (call.what()) {
      case Call::reduce:
        return sum;
      case Call::count:
        return static_cast<std::uint64_t>(votes);
      case Call::any:
        return votes > 0;
      case Call::all:
        return votes == size_;
      case Call::ballot:
        return ballot;
      case Call::any_warp:
        return votes_of_warp > 0;
      case Call::all_warp:
        return votes_of_warp == lanes_;
      default:
        return 0;
    }
  }
  std::vector<std::uint64_t> exchanged(const CollectiveCall& call) const {
    std::vector<std::uint64_t> told;
    ExchangedTypes::visit(call.type(), [&](auto type) {
      using T = decltype(type);
      std::vector<T> values;
      for (int rank = 0; rank < size_; ++rank) values.push_back(T::of(call.of(rank)));
      if (call.what() == Call::broadcast) values.assign(values.size(), values[static_cast<std::size_t>(call.from() % size_)]);
      else values = scanned(values, lanes_, call.what() == Call::inclusive ? nullptr : std::make_unique<T>(T::of(call.bits)));
      for (const T& value : values) told.push_back(hash_of(value));
    });
    return told;
  }

  int size_;
  int lanes_;
};

/// A body of `calls` calls, each pass with others. `out`: a word for each thread and pass.
struct Collectives {
  std::uint64_t* out;
  std::uint64_t seed;
  int calls;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t pass = block.iteration();
    out[pass * static_cast<std::uint32_t>(block.size()) + static_cast<std::uint32_t>(block.rank())] =
        make_calls(block, mix(seed, pass), calls);
  }
};

/// The same in a compute and a store part.
struct StoredCollectives {
  Collectives computed, stored;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    computed(block);
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    computed(block);
    block.template producer_acquire<std::uint32_t>();
    block.producer_commit();
  }
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    while (block.template consumer_wait<std::uint32_t>()) block.consumer_release();
    stored(block);
  }
};

/// Tasks of both types with random numbers of calls, some after others, on `runtime`: as a dynamic graph, a compiled and a
/// phased one.
class CollectivesBench {
 public:
  CollectivesBench(Runtime& runtime, std::uint64_t seed, std::uint32_t tasks, std::uint32_t passes)
      : runtime_(runtime),
        seed_(seed),
        tasks_(tasks),
        passes_(passes),
        out_(runtime.allocate<std::uint64_t>(2 * tasks * words_of_part())) {}

  void check() {
    run(runtime_.load(graph(false)), false);
    run(runtime_.load(graph(false), compiled), runtime_.on_gpu());
    run(runtime_.load(graph(true)), false);
  }

 private:
  static constexpr std::uint32_t kMostThreads = 256;

  std::uint32_t words_of_part() const { return kMostThreads * passes_; }
  /// Of a task; `part` 0 is the body, 1 the store part.
  Collectives calls(std::uint32_t task, std::uint32_t part) {
    const std::uint64_t own = mix(seed_, 2 * task + part);
    return {out_.data() + (2 * task + part) * words_of_part(), own, static_cast<int>(own % 30)};
  }
  Graph graph(bool phased) {
    Graph made;
    std::vector<TaskRef<>> before;
    for (std::uint32_t t = 0; t < tasks_; ++t) {
      if (phased && t && t % 3 == 0) made.phase();
      before.push_back(t % 2 ? made.add(StoredCollectives{calls(t, 0), calls(t, 1)}) : made.add(calls(t, 0)));
      if (!phased && t >= 2 && t % 4 < 3) made.edge(before[t - 2], before[t]);
    }
    return made;
  }
  void run(Executable executable, bool stores) {
    out_.write(std::vector<std::uint64_t>(out_.size()));
    runtime_.submit(executable, repeat(passes_)).wait();
    const std::vector<std::uint64_t> told = out_.read();
    for (std::uint32_t t = 0; t < tasks_; ++t) {
      check_part(told, calls(t, 0), runtime_.on_gpu() ? 256 : 1);
      if (stores && t % 2) check_part(told, calls(t, 1), 32);
    }
  }
  void check_part(const std::vector<std::uint64_t>& told, const Collectives& part, int size) {
    const CollectiveOracle oracle(size, size == 1 ? 1 : 32);
    for (std::uint32_t pass = 0; pass < passes_; ++pass) {
      const auto first = told.begin() + (part.out - out_.data()) + static_cast<int>(pass) * size;
      REQUIRE(std::vector<std::uint64_t>(first, first + size) == oracle.calls(mix(part.seed, pass), part.calls));
    }
  }

  Runtime& runtime_;
  const std::uint64_t seed_;
  const std::uint32_t tasks_, passes_;
  Buffer<std::uint64_t> out_;
};

}  // namespace flywheel::testing
