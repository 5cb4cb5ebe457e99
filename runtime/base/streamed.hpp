// The arrays that block.stream() and block.stream_reduce() pass over, and what the functions given to those calls must be. The
// blocks of GPUs (device/stream/stream.cuh) and the one thread of a CPU worker (runtime/records/one_thread.hpp) check it, so
// that a body that compiles for one compiles for the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "platform.hpp"

namespace flywheel {
namespace detail {

inline constexpr std::size_t kMostStreamed = 4;  // arrays that a pass reads, and arrays that it writes

template <class T>
constexpr bool kStreamed = std::is_trivially_copyable_v<T> && sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0;

template <std::size_t I, class T>
struct ArrayAt {
  T* at;
};
template <class Indices, class... T>
struct ArrayList;
/// Pointers to arrays of different types, each found by its number.
template <std::size_t... I, class... T>
struct ArrayList<std::index_sequence<I...>, T...> : ArrayAt<I, T>... {
  using Indices = std::index_sequence<I...>;
  static constexpr std::size_t kCount = sizeof...(T);

  static_assert(kCount <= kMostStreamed,
                "a pass reads up to 4 arrays and writes up to 4: make two passes, or an array of structs");
  static_assert(
      (kStreamed<T> && ...),
      "the elements of streamed arrays are trivially copyable and have 1, 2, 4, 8 or 16 bytes: use block.for_each() for "
      "others, or an array for each member");
};
template <std::size_t I, class T>
FLYWHEEL_TASK constexpr T* array(const ArrayAt<I, T>& of) {
  return of.at;
}

}  // namespace detail

/// The arrays that a pass reads, see reads(); and those that it writes, see writes().
template <class... T>
struct Reads : detail::ArrayList<std::index_sequence_for<T...>, const T...> {};
template <class... T>
struct Writes : detail::ArrayList<std::index_sequence_for<T...>, T...> {};

/// The arrays that block.stream() or block.stream_reduce() reads, at most 4: pointers to elements of 1, 2, 4, 8 or 16 bytes,
/// aligned as their type.
template <class... T>
FLYWHEEL_TASK constexpr Reads<T...> reads(const T*... arrays) {
  return {{{arrays}...}};
}
/// The arrays that block.stream() writes, at most 4. One may also be among those that it reads: the same pointer, to elements
/// of the same size. Any other overlap is an error that nothing detects.
template <class... T>
FLYWHEEL_TASK constexpr Writes<T...> writes(T*... arrays) {
  static_assert((!std::is_const_v<T> && ...), "writes() names arrays to write: their elements are not const");
  return {{{arrays}...}};
}

namespace detail {
/// n / by. 32 bits are a short division on a GPU, and mostly enough.
FLYWHEEL_TASK constexpr std::uint64_t quotient(std::uint64_t n, std::uint32_t by) {
  return n >> 32 ? n / by : static_cast<std::uint32_t>(n) / by;
}
}  // namespace detail

/// A part of n elements: `count` of them, from the one numbered `first`.
struct Chunk {
  std::uint64_t first, count;
};
/// Chunk `index` of `chunks` equal ones, which cover n elements. Each begins at a multiple of 32 elements, so that vectors are
/// aligned in it where they are in the whole array; the last ones may be empty. For tasks that share the elements out:
///
///   for (std::uint32_t i = 0; i < rt.workers(); ++i) g.add(Scale{x, chunk_of(n, i, rt.workers())});
FLYWHEEL_TASK constexpr Chunk chunk_of(std::uint64_t n, std::uint32_t index, std::uint32_t chunks) {
  constexpr std::uint64_t kUnit = 32;
  const std::uint64_t units = n / kUnit + (n % kUnit != 0);
  const std::uint64_t each = detail::quotient(units, chunks), more = units - each * chunks;
  const std::uint64_t begin = (index * each + (index < more ? index : more)) * kUnit;
  const std::uint64_t end = begin + (each + (index < more)) * kUnit;
  return {begin < n ? begin : n, (end < n ? end : n) - (begin < n ? begin : n)};
}

/// What one worker has of n elements, see share_of().
struct Share {
  std::uint64_t n;
  std::uint32_t worker, workers;
};

namespace detail {

/// A number of elements; a negative one counts as none.
template <class N>
FLYWHEEL_TASK constexpr std::uint64_t streamed_count(N n) {
  static_assert(
      std::is_integral_v<N>,
      "the first argument of stream() and stream_reduce() is the number of elements, an integer, or share_of(n, block)");
  if constexpr (std::is_signed_v<N>) return n < 0 ? 0 : static_cast<std::uint64_t>(n);
  else return n;
}

/// All elements, as the share of the one worker that there is.
struct Whole {
  std::uint64_t n;
  static constexpr std::uint32_t worker = 0, workers = 1;
};
/// The first argument of a pass: Whole or Share.
template <class N>
FLYWHEEL_TASK constexpr Whole extent_of(N n) {
  return Whole{streamed_count(n)};
}
FLYWHEEL_TASK constexpr Share extent_of(const Share& share) { return share; }

/// The share as a chunk, of `count` things that all workers have together.
FLYWHEEL_TASK constexpr Chunk own_chunk(const Whole&, std::uint64_t count) { return {0, count}; }
FLYWHEEL_TASK constexpr Chunk own_chunk(const Share& share, std::uint64_t count) {
  return chunk_of(count, share.worker, share.workers);
}

}  // namespace detail

/// The share of the block's worker in n elements, for a task that all workers run (Graph::add_grid()): stands for the number of
/// elements in stream() and stream_reduce(), whose arrays are then whole ones. All shares together are all elements, each once.
/// Memory is faster so than with a chunk for each worker: it is shared out in small parts. On a GPU they go to whoever comes
/// for the next one, in a stream() that gives each worker 1 MB or more to read; so a worker that is behind has less.
/// Which elements a worker has differs from pass to pass, so before a pass that reads what another wrote comes grid_sync():
///
///   block.stream(flywheel::share_of(n, block), flywheel::reads(x), flywheel::writes(y), f);
///   if (!block.grid_sync()) return;
///   block.stream(flywheel::share_of(n, block), flywheel::reads(y), flywheel::writes(x), g);
template <class N, class Block>
FLYWHEEL_TASK constexpr Share share_of(N n, const Block& block) {
  return {detail::streamed_count(n), block.worker(), block.workers()};
}

namespace detail {

template <std::size_t I>
using Index = std::integral_constant<std::size_t, I>;

struct AnyMember {
  template <class T>
  operator T() const;
};
template <class T, class Indices>
inline constexpr bool kTakesMembers = false;
template <class T, std::size_t... I>
requires requires { T{(static_cast<void>(I), AnyMember{})...}; }
inline constexpr bool kTakesMembers<T, std::index_sequence<I...>> = true;
/// A struct of so many members, and no more.
template <class T, std::size_t kMembers>
inline constexpr bool kHasMembers = std::is_aggregate_v<T>&& kTakesMembers<T, std::make_index_sequence<kMembers>> &&
                                    !kTakesMembers<T, std::make_index_sequence<kMembers + 1>>;

/// What a pass reads, in bytes: of all workers.
template <class N, class... In>
FLYWHEEL_TASK constexpr std::uint64_t streamed_bytes(const N& n, const Reads<In...>&) {
  return extent_of(n).n * (sizeof(In) + ... + 0);
}
/// f(i) for each element that is the calling worker's, for a plain loop.
template <class N, class F>
FLYWHEEL_TASK void for_own_elements(const N& n, F&& f) {
  const auto extent = extent_of(n);
  const Chunk own = own_chunk(extent, extent.n);
  for (std::uint64_t i = own.first; i < own.first + own.count; ++i) f(i);
}

/// Calls put(Index<I>{}, value) for each of the results of f: one value, or a struct with a member for each of more outputs.
template <std::size_t kOutputs, class Result, class Put>
[[gnu::always_inline]] FLYWHEEL_TASK inline void put_results(const Result& result, Put&& put) {
  if constexpr (kOutputs == 1) {
    put(Index<0>{}, result);
  } else if constexpr (kOutputs == 2) {
    const auto& [a, b] = result;
    put(Index<0>{}, a), put(Index<1>{}, b);
  } else if constexpr (kOutputs == 3) {
    const auto& [a, b, c] = result;
    put(Index<0>{}, a), put(Index<1>{}, b), put(Index<2>{}, c);
  } else {
    const auto& [a, b, c, d] = result;
    put(Index<0>{}, a), put(Index<1>{}, b), put(Index<2>{}, c), put(Index<3>{}, d);
  }
}

/// Whether f fits the arrays that a pass reads and writes. If not, no second error follows the sentence.
template <class F, class... In, class... Out>
FLYWHEEL_TASK constexpr bool check_streamed(const Reads<In...>&, const Writes<Out...>&) {
  static_assert(sizeof...(In) > 0, "stream() reads at least one array: name it in flywheel::reads(array)");
  constexpr bool kCalls = std::is_invocable_v<F&, In...>;
  static_assert(
      kCalls,
      "f takes one value of each array in reads(), in their order: for reads(x, y) write [=](float x, float y) { ... }");
  if constexpr (kCalls) {
    using Result = std::invoke_result_t<F&, In...>;
    if constexpr (sizeof...(Out) == 0) {
      static_assert(std::is_void_v<Result>,
                    "f returns a value, and no array takes it: put writes(array) between reads() and f, or return nothing");
      return std::is_void_v<Result>;
    } else if constexpr (sizeof...(Out) == 1) {
      constexpr bool kFits = (std::is_convertible_v<Result, Out> && ...);
      static_assert(kFits, "f returns a value for the array in writes(): return one that converts to its elements");
      return kFits;
    } else {
      constexpr bool kFits = kHasMembers<std::remove_cvref_t<Result>, sizeof...(Out)>;
      static_assert(kFits, "with more than one array in writes(), f returns a struct with one member for each, in their order");
      return kFits;
    }
  }
  return kCalls;
}

/// The same for the f and the op of stream_reduce().
template <class T, class Op, class F, class... In>
FLYWHEEL_TASK constexpr bool check_stream_reduce(const Reads<In...>&) {
  static_assert(sizeof...(In) > 0, "stream_reduce() reads at least one array: name it in flywheel::reads(array)");
  constexpr bool kCalls = std::is_invocable_r_v<T, F&, In...>;
  static_assert(
      kCalls,
      "f of stream_reduce() takes one value of each array in reads(), in their order, and returns what converts to the "
      "type of init");
  constexpr bool kCombines = std::is_invocable_r_v<T, Op&, T, T>;
  static_assert(kCombines,
                "op of stream_reduce() combines two values of the type of init to one: [](T a, T b) { return a + b; }");
  return kCalls && kCombines;
}

/// f of the i-th elements, for a plain loop.
template <class... In, class F, std::size_t... I>
FLYWHEEL_TASK decltype(auto) call_for_element(std::uint64_t i, const ArrayList<std::index_sequence<I...>, In...>& in, F& f) {
  return f(detail::array<I>(in)[i]...);
}
/// The same, with its results stored.
template <class... In, class... Out, class F>
FLYWHEEL_TASK void stream_element(std::uint64_t i, const Reads<In...>& in, const Writes<Out...>& out, F& f) {
  if constexpr (sizeof...(Out) == 0) {
    detail::call_for_element(i, in, f);
  } else {
    detail::put_results<sizeof...(Out)>(detail::call_for_element(i, in, f), [&](auto number, const auto& value) {
      auto* const to = detail::array<decltype(number)::value>(out);
      to[i] = static_cast<std::remove_reference_t<decltype(*to)>>(value);
    });
  }
}

}  // namespace detail
}  // namespace flywheel
