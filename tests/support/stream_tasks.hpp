// Tasks that pass over arrays with stream() and stream_reduce(), of random sizes, types and alignments, and the oracle: plain
// loops over a copy of their memory. They run on CPU workers, on the emulated GPU, on fibers and on GPUs.
#pragma once

#include <array>
#include <cstring>
#include <tuple>

#include "catch.hpp"
#include "support/atomics.hpp"
#include "support/exchanged_values.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// One pass. Its arrays lie at `offsets` in `memory`; `sum` gets what is no array.
struct StreamCall {
  unsigned char* memory;
  std::uint64_t* sum;  // of `memory`'s own; atomic
  std::uint32_t kind, n;
  std::uint32_t offsets[6];

  template <class T>
  FLYWHEEL_TASK T* at(int number) const {
    return reinterpret_cast<T*>(memory + offsets[number]);
  }
  FLYWHEEL_TASK void add(std::uint64_t value) const { testing::add_to(*sum, value); }
};

/// Memory aligned as a device's.
struct alignas(16) AlignedLine {
  unsigned char bytes[16];
};
struct Quad {  // 16 bytes that are aligned to 4
  std::uint32_t a, b, c, d;
};
struct TwoResults {
  std::uint32_t first, second;
};
struct ThreeResults {
  std::uint64_t first;
  std::uint32_t second;
  std::uint8_t third;
};
struct SumAndMost {
  std::uint64_t sum, most;
};

/// Which arrays a kind of pass has.
template <class... T>
struct HasArrays {
  static constexpr std::array<std::uint32_t, sizeof...(T)> kSizes{sizeof(T)...}, kAlignments{alignof(T)...};
};

struct InPlace : HasArrays<std::uint32_t, std::uint32_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    auto *x = c.at<std::uint32_t>(0), *y = c.at<std::uint32_t>(1);
    block.stream(c.n, reads(x, y), writes(y), [](std::uint32_t a, std::uint32_t b) { return 3 * a + b; });
  }
};
struct OfBytes : HasArrays<std::uint8_t, std::uint8_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(std::int64_t{c.n}, reads(c.at<std::uint8_t>(0)), writes(c.at<std::uint8_t>(1)),
                 [](std::uint8_t x) { return 5 * x + 1; });
  }
};
struct OfDifferentSizes : HasArrays<std::uint8_t, std::uint32_t, std::uint64_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(c.n, reads(c.at<std::uint8_t>(0), c.at<std::uint32_t>(1)), writes(c.at<std::uint64_t>(2)),
                 [](std::uint8_t x, std::uint32_t y) { return std::uint64_t{x} << 32 | y; });
  }
};
struct OfQuads : HasArrays<Quad> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(c.n, reads(c.at<Quad>(0)), writes(c.at<Quad>(0)), [](Quad q) { return Quad{q.d, q.a + q.b, q.c, q.a}; });
  }
};
struct OfThreeInputs : HasArrays<std::uint16_t, std::uint16_t, std::uint16_t, std::uint16_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(
        c.n, reads(c.at<std::uint16_t>(0), c.at<std::uint16_t>(1), c.at<std::uint16_t>(2)), writes(c.at<std::uint16_t>(3)),
        [](std::uint16_t x, std::uint16_t y, std::uint16_t z) { return static_cast<std::uint16_t>(x * 3u + y * 5u + z); });
  }
};
struct ToTwoOutputs : HasArrays<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    auto *w = c.at<std::uint32_t>(0), *z = c.at<std::uint32_t>(3);
    block.stream(c.n, reads(w, c.at<std::uint32_t>(1), c.at<std::uint32_t>(2), z), writes(z, w),
                 [](std::uint32_t a, std::uint32_t b, std::uint32_t d, std::uint32_t e) {
                   return TwoResults{a + b, d ^ e};
                 });
  }
};
struct ToThreeOutputs : HasArrays<std::uint64_t, std::uint32_t, std::uint8_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(c.n, reads(c.at<std::uint64_t>(0)),
                 writes(c.at<std::uint64_t>(0), c.at<std::uint32_t>(1), c.at<std::uint8_t>(2)), [](std::uint64_t x) {
                   return ThreeResults{x * 7, static_cast<std::uint32_t>(x >> 32), static_cast<std::uint8_t>(x)};
                 });
  }
};
struct ToNoOutput : HasArrays<std::uint64_t, std::uint16_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    block.stream(c.n, reads(c.at<std::uint64_t>(0), c.at<std::uint16_t>(1)),
                 [&](std::uint64_t x, std::uint16_t y) { c.add(mix(x, y)); });
  }
};

/// All threads have the same result, which goes to the sum.
template <class Block, class T>
FLYWHEEL_TASK void note_result(Block& block, const StreamCall& c, const T& result) {
  const std::uint64_t hash = hash_of(result);
  const bool same = block.all(hash == block.broadcast(hash, 0));
  if (block.leader()) c.add(same ? hash : 1);
}
struct SumOfWords : HasArrays<std::uint32_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    const auto plus = [](std::uint32_t a, std::uint32_t b) { return a + b; };
    note_result(block, c,
                block.stream_reduce(c.n, reads(c.at<std::uint32_t>(0)), c.kind + 1, plus, [](std::uint32_t x) { return x; }));
  }
};
struct SumOfProducts : HasArrays<std::uint8_t, std::uint8_t> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    const auto plus = [](std::uint64_t a, std::uint64_t b) { return a + b; };
    const auto times = [](std::uint8_t x, std::uint8_t y) { return static_cast<std::uint32_t>(x * y); };
    note_result(block, c,
                block.stream_reduce(c.n, reads(c.at<std::uint8_t>(0), c.at<std::uint8_t>(1)), std::uint64_t{5}, plus, times));
  }
};
struct OfTwoResults : HasArrays<std::uint16_t, Quad> {
  template <class Block>
  FLYWHEEL_TASK static void run(Block& block, const StreamCall& c) {
    const auto both = [](SumAndMost a, SumAndMost b) { return SumAndMost{a.sum + b.sum, a.most < b.most ? b.most : a.most}; };
    note_result(block, c,
                block.stream_reduce(c.n, reads(c.at<std::uint16_t>(0), c.at<Quad>(1)), SumAndMost{1, 2}, both,
                                    [](std::uint16_t x, Quad q) {
                                      return SumAndMost{x + std::uint64_t{q.a}, q.d};
                                    }));
  }
};

template <class... Kinds>
struct StreamKindList {
  static constexpr std::uint32_t kCount = sizeof...(Kinds);
  template <class F>
  FLYWHEEL_TASK static void visit(std::uint32_t number, F&& f) {
    TypesToVisit<Kinds...>::visit(number, f);
  }
};
using StreamKinds = StreamKindList<InPlace, OfBytes, OfDifferentSizes, OfQuads, OfThreeInputs, ToTwoOutputs, ToThreeOutputs,
                                   ToNoOutput, SumOfWords, SumOfProducts, OfTwoResults>;

template <class Block>
FLYWHEEL_TASK void run_call(Block& block, const StreamCall& c) {
  StreamKinds::visit(c.kind, [&](auto kind) { kind.run(block, c); });
}

/// The oracle's block: plain loops, each array by its own pointer.
struct PlainLoops {
  FLYWHEEL_TASK static bool all(bool vote) { return vote; }
  FLYWHEEL_TASK static bool leader() { return true; }
  FLYWHEEL_TASK static std::uint64_t broadcast(std::uint64_t value, int) { return value; }

  template <class N, class... In, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, F&& f) const {
    for (N i = 0; i < n; ++i) std::apply(f, values(in, i, std::index_sequence_for<In...>{}));
  }
  template <class N, class... In, class Out, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, const Writes<Out>& out, F&& f) const {
    for (N i = 0; i < n; ++i)
      detail::array<0>(out)[i] = static_cast<Out>(std::apply(f, values(in, i, std::index_sequence_for<In...>{})));
  }
  template <class N, class... In, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, const Writes<std::uint32_t, std::uint32_t>& out, F&& f) const {
    for (N i = 0; i < n; ++i) {
      const TwoResults two = std::apply(f, values(in, i, std::index_sequence_for<In...>{}));
      detail::array<0>(out)[i] = two.first, detail::array<1>(out)[i] = two.second;
    }
  }
  template <class N, class... In, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, const Writes<std::uint64_t, std::uint32_t, std::uint8_t>& out,
                            F&& f) const {
    for (N i = 0; i < n; ++i) {
      const ThreeResults three = std::apply(f, values(in, i, std::index_sequence_for<In...>{}));
      detail::array<0>(out)[i] = three.first, detail::array<1>(out)[i] = three.second, detail::array<2>(out)[i] = three.third;
    }
  }
  template <class N, class... In, class T, class Op, class F>
  FLYWHEEL_TASK T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    for (N i = 0; i < n; ++i) init = op(init, std::apply(f, values(in, i, std::index_sequence_for<In...>{})));
    return init;
  }

 private:
  template <class... In, class N, std::size_t... I>
  FLYWHEEL_TASK static std::tuple<In...> values(const Reads<In...>& in, N i, std::index_sequence<I...>) {
    return {detail::array<I>(in)[i]...};
  }
};

/// Places for the arrays of a call: half of the time all on 16 bytes, else each anywhere that its type may be. Returns the end.
inline std::uint32_t place_arrays(StreamCall& call, Random& random) {
  const std::uint32_t apart = pick(random, 0, 3);
  std::uint32_t end = 0;
  StreamKinds::visit(call.kind, [&](auto kind) {
    const std::uint32_t same = pick(random, 0, 31);
    for (std::size_t a = 0; a < kind.kSizes.size(); ++a) {
      const std::uint32_t begin = (end + 31) / 16 * 16;
      std::uint32_t ahead = 0;  // as many elements of each, as many bytes, or neither
      if (apart == 1) ahead = same % 16 * kind.kSizes[a];
      if (apart >= 2) ahead = pick(random, 0, 15) * kind.kAlignments[a];
      call.offsets[a] = begin + ahead;
      end = call.offsets[a] + call.n * kind.kSizes[a];
    }
  });
  return end + 16;
}

/// A random call, without memory, and how many bytes of it it needs.
struct DrawnCall {
  StreamCall call;
  std::uint32_t bytes;
  DrawnCall(Random& random, std::uint32_t most) : call{} {
    call.kind = pick(random, 0, StreamKinds::kCount - 1);
    call.n = pick(random, 0, pick(random, 0, 2) ? 70 : most);
    bytes = (place_arrays(call, random) + 15) / 16 * 16;
  }
};

struct Streams {
  StreamCall call;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    run_call(block, call);
  }
};
/// The same in a store part.
struct StoredStreams {
  StreamCall call;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    run_call(block, call);
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    block.template producer_acquire<std::uint32_t>();
    block.producer_commit();
  }
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    while (block.template consumer_wait<std::uint32_t>()) block.consumer_release();
    run_call(block, call);
  }
};

}  // namespace flywheel::testing
