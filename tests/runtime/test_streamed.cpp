// Passes over arrays on CPU workers, where a block has one thread and stream() is a plain loop; how elements are shared out.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "device/stream/stream.cuh"
#include "support/share_tasks.hpp"
#include "support/stream_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Checks that vectors are aligned.
struct AlignedVectors {
  static bool reaches(const void*) { return true; }
  template <class T, int kElements>
  static void load(bool there, detail::StreamVector<T, kElements>& to, const T* from) {
    to = {};
    if (!there) return;
    REQUIRE(reinterpret_cast<std::uintptr_t>(from) % (sizeof(T) * kElements) == 0);
    std::memcpy(to.words, from, sizeof(T) * kElements);
  }
  template <class T, int kElements>
  static void store(T* to, const detail::StreamVector<T, kElements>& from) {
    REQUIRE(reinterpret_cast<std::uintptr_t>(to) % (sizeof(T) * kElements) == 0);
    std::memcpy(to, from.words, sizeof(T) * kElements);
  }
};

/// A block of so many threads, which run one after the other.
template <int kThreads>
struct ThreadsInTurn : PlainLoops {
  template <class N, class... In, class... Out, class F>
  void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    for (int rank = 0; rank < kThreads; ++rank) detail::stream_part<AlignedVectors, kThreads>(rank, n, in, out, f);
  }
  template <class N, class... In, class F>
  void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  /// The threads with a value are the first.
  template <class N, class... In, class T, class Op, class F>
  T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    for (int rank = 0; rank < kThreads; ++rank) {
      T total = init;
      const auto threads = detail::reduce_part<AlignedVectors, kThreads>(rank, n, in, total, op, f);
      if (static_cast<std::uint32_t>(rank) < threads) init = op(init, total);
    }
    return init;
  }
};

struct Backward : detail::NoRing {
  static constexpr bool backward = true;
};

/// What a call leaves in a copy of `memory`, and its sum in front.
template <class Block>
std::vector<unsigned char> left_by(Block block, DrawnCall drawn, const std::vector<unsigned char>& memory) {
  std::vector<AlignedLine> lines(memory.size() / 16 + 1);
  unsigned char* const at = lines.front().bytes;
  std::memcpy(at, memory.data(), memory.size());
  drawn.call.sum = reinterpret_cast<std::uint64_t*>(at);
  drawn.call.memory = at + 16;
  run_call(block, drawn.call);
  return {at, at + memory.size()};
}

}  // namespace

TEST_CASE("streamed: all threads together do what plain loops do, in aligned vectors") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    const DrawnCall drawn(random, 20'000);
    std::vector<unsigned char> memory(drawn.bytes + 16u);
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random());
    const std::vector<unsigned char> want = left_by(PlainLoops{}, drawn, memory);
    INFO("kind " << drawn.call.kind << ", " << drawn.call.n << " elements");
    REQUIRE(left_by(ThreadsInTurn<256>{}, drawn, memory) == want);
    REQUIRE(left_by(ThreadsInTurn<32>{}, drawn, memory) == want);
  }
}

TEST_CASE("streamed: on CPU workers tasks do what plain loops do") {
  FLYWHEEL_TEST_SEED(seed);
  Options options;
  options.target = Target::cpu;
  options.workers = 3;
  Runtime runtime = start<Streams, StoredStreams>(options);
  StreamBench(runtime, seed, 100, 3000).check();
}

TEST_CASE("streamed: on CPU workers a grid task's workers share passes out") {
  FLYWHEEL_TEST_SEED(seed);
  Options options;
  options.target = Target::cpu;
  options.workers = 3;
  Runtime runtime = start<WordShares, ByteShares>(options);
  check_shares(runtime, seed, 40, 30'000);
}

TEST_CASE("streamed: all shares together are each element once, forward and backward") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t n = pick(random, 0, 40'000), workers = pick(random, 1, 5), ahead = pick(random, 0, 5);
    std::vector<AlignedLine> lines(n / 4 + 3);
    auto* const x = reinterpret_cast<std::uint32_t*>(lines.front().bytes) + ahead;
    for (std::uint32_t i = 0; i < n; ++i) x[i] = i;
    auto next = [](std::uint32_t value) { return value + 1; };
    std::uint64_t sum = 0;
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      const Share share{n, worker, workers};
      for (int rank = 0; rank < 256; ++rank) {
        detail::stream_part<AlignedVectors, 256>(rank, share, reads(x), writes(x), next);
        detail::stream_part<AlignedVectors, 256>(rank, share, reads(x), writes(x), next, Backward{});
      }
      sum += ThreadsInTurn<256>{}.stream_reduce(share, reads(x), std::uint64_t{0}, std::plus<>{},
                                                [](std::uint32_t value) { return std::uint64_t{value}; });
    }
    INFO(n << " elements, " << ahead << " behind an aligned place, " << workers << " workers");
    for (std::uint32_t i = 0; i < n; ++i) REQUIRE(x[i] == i + 2);
    REQUIRE(sum == std::uint64_t{n} * (n + std::uint64_t{3}) / 2);
  }
}

TEST_CASE("streamed: no elements, and a negative number of them, are none") {
  const OneThread block;
  float x = 1;
  const auto twice = [](float a) { return 2 * a; };
  const auto never = [](float, float) -> float { throw std::logic_error("there is nothing to combine"); };
  block.stream(0, reads(&x), writes(&x), twice);
  block.stream(-1, reads(&x), writes(&x), twice);
  CHECK(x == 1);
  CHECK(block.stream_reduce(-5, reads(&x), 7.0f, never, twice) == 7.0f);
  block.stream(std::size_t{1}, reads(&x), writes(&x), twice);
  CHECK(x == 2);
}

TEST_CASE("streamed: chunks cover all elements once, begin on 32 and differ by 32 at most") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t n = random() >> pick(random, 1, 63);
    const std::uint32_t chunks = pick(random, 1, 300);
    std::uint64_t next = 0, least = n, most = 0;
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const Chunk chunk = chunk_of(n, i, chunks);
      REQUIRE(chunk.first == next);
      REQUIRE((chunk.first % 32 == 0 || chunk.count == 0));
      next += chunk.count;
      if (next < n) least = std::min(least, chunk.count);
      most = std::max(most, chunk.count);
    }
    REQUIRE(next == n);
    if (least < n) REQUIRE(most - least <= 32);
  }
  STATIC_REQUIRE(chunk_of(100, 1, 4).first == 32);
  STATIC_REQUIRE(chunk_of(0, 3, 7).count == 0);
}
