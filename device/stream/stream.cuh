// How the threads of a block pass over arrays in stream() and stream_reduce(). stream_ring.cuh includes it. It is plain C++ and
// is given its access to memory, so that tests run it with one of theirs.
//
// A thread loads a batch of vectors, of up to 16 bytes of each array, before it uses the first of them: memory has enough to do
// then. Consecutive threads take consecutive vectors. No thread waits for another, and warps are at different places, so loads
// of one are under way while another computes. The few elements before the first aligned vector and after the last one are
// taken one by one, and so are all elements of arrays that are not aligned alike.
#pragma once

#include <cstring>

#include "../../runtime/base/streamed.hpp"

namespace flywheel::detail {

/// Loads that a thread issues before it uses the first, in a pass by vectors of so many elements of so many bytes. 12 of 16
/// bytes are 48 KB an SM, and 48 registers. Single elements are small, so there are more of them. Vectors of bytes have fewer:
/// the code has a copy of f for each element of a batch.
template <int kElements, std::size_t kBytes>
inline constexpr int kLoadsOfBatch = kElements > 8            ? 6
                                     : kElements* kBytes <= 8 ? 24
                                                              : 12;

/// f(Index<0>{}), f(Index<1>{}), ...: a loop that is unrolled, so that arrays which it indexes stay in registers.
template <class F, std::size_t... I>
[[gnu::always_inline]] FLYWHEEL_TASK inline void unroll(std::index_sequence<I...>, F&& f) {
  (f(Index<I>{}), ...);
}
template <int kTimes, class F>
[[gnu::always_inline]] FLYWHEEL_TASK inline void unroll(F&& f) {
  detail::unroll(std::make_index_sequence<kTimes>{}, f);
}

/// Consecutive elements of one array.
template <class T, int kElements>
struct StreamVector {
  static constexpr std::size_t kSize = sizeof(T), kBytes = kSize * kElements;
  std::uint32_t words[(kBytes + 3) / 4];

  template <std::size_t kAt>
  [[gnu::always_inline]] FLYWHEEL_TASK T get() const {
    T value;
    if constexpr (kSize < 4) {
      const std::uint32_t bits = words[kSize * kAt / 4] >> (kSize * kAt % 4 * 8);
      memcpy(&value, &bits, kSize);
    } else {
      memcpy(&value, words + kSize / 4 * kAt, kSize);
    }
    return value;
  }
  /// In ascending order of elements: those that share a word are put in one after the other.
  template <std::size_t kAt>
  [[gnu::always_inline]] FLYWHEEL_TASK void set(T value) {
    if constexpr (kSize < 4) {
      constexpr std::size_t kShift = kSize * kAt % 4 * 8;
      std::uint32_t bits = 0;
      memcpy(&bits, &value, kSize);
      words[kSize * kAt / 4] = kShift ? words[kSize * kAt / 4] | bits << kShift : bits;
    } else {
      memcpy(words + kSize / 4 * kAt, &value, kSize);
    }
  }
};

/// Access to memory by single elements, wherever they are. A pass by vectors is given a type with the same two functions for
/// vectors that are aligned to their size, and with `static bool reaches(const void*)`: whether they may be used there.
struct ByElement {
  /// If `there`; else zeros, as if they had been loaded: a value that is not set would be one kept from the batch before.
  template <class T>
  [[gnu::always_inline]] FLYWHEEL_TASK static void load(bool there, StreamVector<T, 1>& to, const T* from) {
    T value{};
    if (there) value = *from;
    to.template set<0>(value);
  }
  template <class T>
  [[gnu::always_inline]] FLYWHEEL_TASK static void store(T* to, const StreamVector<T, 1>& from) {
    const T value = from.template get<0>();
    *to = value;
  }
};

template <std::size_t I, class T, int kElements>
struct VectorAt {
  StreamVector<T, kElements> vector;
};
template <int kElements, class Indices, class... T>
struct VectorList;
/// A vector of each array.
template <int kElements, std::size_t... I, class... T>
struct VectorList<kElements, std::index_sequence<I...>, T...> : VectorAt<I, T, kElements>... {
  template <class Memory>
  [[gnu::always_inline]] FLYWHEEL_TASK void load(bool there, const Reads<T...>& from, std::uint64_t element) {
    (Memory::load(there, VectorAt<I, T, kElements>::vector, detail::array<I>(from) + element), ...);
  }
  template <class Memory>
  [[gnu::always_inline]] FLYWHEEL_TASK void store(const Writes<T...>& to, std::uint64_t element) const {
    (Memory::store(detail::array<I>(to) + element, VectorAt<I, T, kElements>::vector), ...);
  }
  /// f of the values of one element.
  template <std::size_t kAt, class F>
  [[gnu::always_inline]] FLYWHEEL_TASK decltype(auto) call(F& f) const {
    return f(VectorAt<I, T, kElements>::vector.template get<kAt>()...);
  }
};
/// One element of the vector of array I.
template <std::size_t I, std::size_t kAt, class T, int kElements, class Value>
[[gnu::always_inline]] FLYWHEEL_TASK inline void set_element(VectorAt<I, T, kElements>& of, const Value& value) {
  of.vector.template set<kAt>(static_cast<T>(value));
}

/// What stream() does with the vectors that were loaded: calls f for each element and stores the results.
template <class F, class... Out>
struct StoreResults {
  const Writes<Out...>& out;
  F& f;

  template <class Memory, int kElements, class Vectors>
  [[gnu::always_inline]] FLYWHEEL_TASK void take(const Vectors& vectors, std::uint64_t element) {
    VectorList<kElements, std::index_sequence_for<Out...>, Out...> results;
    detail::unroll<kElements>([&](auto at) __attribute__((always_inline)) {
      constexpr std::size_t kAt = decltype(at)::value;
      detail::put_results<sizeof...(Out)>(
          vectors.template call<kAt>(f), [&](auto array, const auto& value) __attribute__((always_inline)) {
            detail::set_element<decltype(array)::value, kAt>(results, value);
          });
    });
    results.template store<Memory>(out, element);
  }
};
/// The same where f returns nothing.
template <class F>
struct StoreResults<F> {
  const Writes<>& out;
  F& f;

  template <class Memory, int kElements, class Vectors>
  [[gnu::always_inline]] FLYWHEEL_TASK void take(const Vectors& vectors, std::uint64_t) {
    detail::unroll<kElements>([&](auto at) __attribute__((always_inline)) { vectors.template call<decltype(at)::value>(f); });
  }
};

/// What stream_reduce() does with them: combines what f gives, first of the elements of a vector, which wait for no others.
template <class T, class Op, class F>
struct CombineResults {
  T total;
  Op& op;
  F& f;
  bool any = false;  // `total` holds the value of an element

  template <class Memory, int kElements, class Vectors>
  [[gnu::always_inline]] FLYWHEEL_TASK void take(const Vectors& vectors, std::uint64_t) {
    T sum = vectors.template call<0>(f);
    detail::unroll<kElements - 1>([&](auto at) __attribute__((always_inline)) {
      sum = op(sum, static_cast<T>(vectors.template call<decltype(at)::value + 1>(f)));
    });
    total = any ? op(total, sum) : sum;
    any = true;
  }
};

/// How a pass parts n elements: `head` of them one by one, `vectors` vectors, then `tail` more one by one.
struct StreamLayout {
  std::uint64_t head, vectors, tail;

  FLYWHEEL_TASK std::uint64_t single() const { return head + tail; }
  FLYWHEEL_TASK std::uint64_t single_element(std::uint64_t i, std::uint64_t elements_of_vector) const {
    return i < head ? i : i + vectors * elements_of_vector;
  }
};

FLYWHEEL_TASK constexpr std::size_t most_of(std::size_t first) { return first; }
template <class... Sizes>
FLYWHEEL_TASK constexpr std::size_t most_of(std::size_t first, Sizes... others) {
  const std::size_t rest = detail::most_of(others...);
  return first > rest ? first : rest;
}

/// Whether the array is aligned to vectors of so many elements behind the first `head`.
template <int kElements, class T>
FLYWHEEL_TASK inline bool is_aligned(const T* array, std::uint64_t head) {
  return (reinterpret_cast<std::uintptr_t>(array) + head * sizeof(T)) % (sizeof(T) * kElements) == 0;
}

template <class Memory, int kElements, class... In, class... Out, std::size_t... I, std::size_t... O>
FLYWHEEL_TASK StreamLayout layout_of(std::uint64_t n, const Reads<In...>& in, const Writes<Out...>& out,
                                     std::index_sequence<I...>, std::index_sequence<O...>) {
  const auto* first = detail::array<0>(in);
  const std::uintptr_t ahead = -reinterpret_cast<std::uintptr_t>(first) % (sizeof *first * kElements);
  const std::uint64_t head = ahead / sizeof *first;
  const bool fits = n >= head + kElements && (is_aligned<kElements>(detail::array<I>(in), head) && ...) &&
                    (is_aligned<kElements>(detail::array<O>(out), head) && ...) &&
                    (Memory::reaches(detail::array<I>(in)) && ...) && (Memory::reaches(detail::array<O>(out)) && ...);
  if (!fits) return {n, 0, 0};
  return {head, (n - head) / kElements, (n - head) % kElements};
}

/// Loads the vectors of a batch: those at `element`, and at each `kApart` elements more as long as fewer than `left`.
template <class Memory, int kSteps, int kApart, class Vectors, class... In>
[[gnu::always_inline]] FLYWHEEL_TASK inline void load_batch(Vectors (&to)[kSteps], const Reads<In...>& in,
                                                            std::uint64_t element, std::uint64_t left) {
  detail::unroll<kSteps>([&](auto step) __attribute__((always_inline)) {
    constexpr std::size_t kStep = decltype(step)::value;
    to[kStep].template load<Memory>(kStep == 0 || kStep * kApart < left, in, element + kStep * kApart);
  });
}

/// A worker's vectors of `count` that all workers have: batches of kBatch that go round the workers, as many for each, and an
/// equal chunk of what is left.
template <std::uint32_t kBatch>
struct OwnBatches {
  std::uint64_t whole, first, apart;  // batches, the begin of the first, and from one to the next
  Chunk rest;                         // less than a batch

  template <class Extent>
  FLYWHEEL_TASK OwnBatches(const Extent& extent, std::uint64_t count)
      : whole(quotient(count, kBatch * extent.workers)),
        first(kBatch * extent.worker),
        apart(kBatch * extent.workers),
        rest(own_chunk(extent, count - whole * apart)) {
    rest.first += whole * apart;
  }
  FLYWHEEL_TASK std::uint64_t vectors() const { return whole * kBatch + rest.count; }
  FLYWHEEL_TASK std::uint64_t batches() const { return whole + (rest.count != 0); }
  FLYWHEEL_TASK Chunk operator[](std::uint64_t i) const { return i < whole ? Chunk{first + i * apart, kBatch} : rest; }
};

/// One thread's part of a pass over its worker's vectors of `count`, which begin at element `first`; `backward`: from the last
/// batch to the first. Returns how many vectors are the worker's.
template <class Memory, int kElements, int kThreads, class Extent, class... In, class Use>
FLYWHEEL_TASK std::uint64_t pass(int rank, const Extent& extent, const Reads<In...>& in, std::uint64_t first,
                                 std::uint64_t count, bool backward, Use& use) {
  constexpr int kLoads = kLoadsOfBatch<kElements, detail::most_of(sizeof(In)...)>;
  constexpr int kSteps = kLoads / static_cast<int>(sizeof...(In)), kApart = kThreads * kElements;
  const OwnBatches<kSteps * kThreads> own(extent, count);
  const std::uint64_t batches = own.batches();
  for (std::uint64_t i = 0; i < batches; ++i) {
    const Chunk batch = own[backward ? batches - 1 - i : i];
    if (static_cast<std::uint64_t>(rank) >= batch.count) continue;
    const std::uint64_t left = batch.count - static_cast<std::uint64_t>(rank);
    const std::uint64_t element = first + (batch.first + static_cast<std::uint64_t>(rank)) * kElements;
    VectorList<kElements, std::index_sequence_for<In...>, In...> vectors[kSteps];
    // All but the last batch load without conditions, which would keep the compiler from putting the loads first.
    if (left > (kSteps - 1) * kThreads) detail::load_batch<Memory, kSteps, kApart>(vectors, in, element, ~std::uint64_t{0});
    else detail::load_batch<Memory, kSteps, kApart>(vectors, in, element, left * kElements);
    detail::unroll<kSteps>([&](auto step) __attribute__((always_inline)) {
      constexpr std::size_t kStep = decltype(step)::value;
      if (kStep == 0 || kStep * kThreads < left) use.template take<Memory, kElements>(vectors[kStep], element + kStep * kApart);
    });
  }
  return own.vectors();
}

/// What takes no part of a pass, in place of a ring that copies ahead, see stream_ring.cuh.
struct NoRing {
  static constexpr bool backward = false;
  template <int kElements, class Extent, class... In, class Use>
  FLYWHEEL_TASK static std::uint64_t pass(const Extent&, const Reads<In...>&, std::uint64_t, std::uint64_t, Use&) {
    return 0;
  }
};

/// How many threads, of so many, got any of `vectors` and of `single` elements: those of the lowest ranks.
template <int kThreads>
FLYWHEEL_TASK std::uint32_t threads_with(std::uint64_t vectors, std::uint64_t single) {
  const std::uint64_t most = vectors > single ? vectors : single;
  return most < kThreads ? static_cast<std::uint32_t>(most) : kThreads;
}

/// One thread's part of stream() or stream_reduce(): all threads of the block call it, with the same arguments. `use` gets the
/// vectors: StoreResults or CombineResults. Returns how many threads, those of the lowest ranks, got any. `extent`: Whole or
/// Share. `ring`: takes vectors before the loads of this thread, of all workers none or some for each thread; and says whether
/// the pass goes backward.
template <class Memory, int kThreads, class Extent, class... In, class... Out, class Use, class Ring>
FLYWHEEL_TASK std::uint32_t pass_over(int rank, const Extent& extent, const Reads<In...>& in, const Writes<Out...>& out,
                                      Use& use, Ring&& ring) {
  constexpr int kElements = static_cast<int>(16 / detail::most_of(sizeof(In)..., sizeof(Out)...));
  const StreamLayout layout = detail::layout_of<Memory, kElements>(extent.n, in, out, std::index_sequence_for<In...>{},
                                                                   std::index_sequence_for<Out...>{});
  if (layout.vectors == 0) {
    const std::uint64_t own = detail::pass<ByElement, 1, kThreads>(rank, extent, in, 0, extent.n, ring.backward, use);
    return detail::threads_with<kThreads>(own, 0);
  }
  const std::uint64_t taken = ring.template pass<kElements>(extent, in, layout.head, layout.vectors, use);
  const std::uint64_t own = detail::pass<Memory, kElements, kThreads>(rank, extent, in, layout.head + taken * kElements,
                                                                      layout.vectors - taken, ring.backward, use);
  const std::uint64_t single = extent.worker == 0 ? layout.single() : 0;
  if (static_cast<std::uint64_t>(rank) < single) {  // fewer than threads
    const std::uint64_t element = layout.single_element(static_cast<std::uint64_t>(rank), kElements);
    VectorList<1, std::index_sequence_for<In...>, In...> edge;
    edge.template load<ByElement>(true, in, element);
    use.template take<ByElement, 1>(edge, element);
  }
  return detail::threads_with<kThreads>(taken ? kThreads : own, single);
}

/// One thread's part of stream().
template <class Memory, int kThreads, class N, class... In, class... Out, class F, class Ring = NoRing>
FLYWHEEL_TASK void stream_part(int rank, const N& n, const Reads<In...>& in, const Writes<Out...>& out, F& f,
                               Ring&& ring = {}) {
  if constexpr (detail::check_streamed<F>(Reads<In...>{}, Writes<Out...>{})) {
    StoreResults<F, Out...> use{out, f};
    detail::pass_over<Memory, kThreads>(rank, detail::extent_of(n), in, out, use, ring);
  }
}

/// One thread's part of stream_reduce(): combines its elements in `total`, and returns how many threads have any.
template <class Memory, int kThreads, class N, class... In, class T, class Op, class F, class Ring = NoRing>
FLYWHEEL_TASK std::uint32_t reduce_part(int rank, const N& n, const Reads<In...>& in, T& total, Op& op, F& f,
                                        Ring&& ring = {}) {
  if constexpr (detail::check_stream_reduce<T, Op, F>(Reads<In...>{})) {
    CombineResults<T, Op, F> use{total, op, f};
    const std::uint32_t threads = detail::pass_over<Memory, kThreads>(rank, detail::extent_of(n), in, Writes<>{}, use, ring);
    total = use.total;
    return threads;
  } else {
    return 0;
  }
}

}  // namespace flywheel::detail
