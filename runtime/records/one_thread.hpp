// The threads of a block that has one: what CpuBlock (runtime/cpu/block.hpp) has of them, and the stand-ins of any_block.hpp.
#pragma once

#include "../base/exchanged.hpp"
#include "../base/streamed.hpp"

namespace flywheel::detail {

/// The one thread is the one lane of the only warp, so all that threads do together is done by it alone.
struct OneThread {
  static constexpr int kWarps = 1;
  static constexpr int kLanes = 1;
  FLYWHEEL_TASK static constexpr int rank() { return 0; }
  FLYWHEEL_TASK static constexpr int size() { return 1; }
  FLYWHEEL_TASK static constexpr bool leader() { return true; }
  FLYWHEEL_TASK static constexpr int lane() { return 0; }
  FLYWHEEL_TASK static constexpr int warp() { return 0; }
  FLYWHEEL_TASK static void sync() {}
  FLYWHEEL_TASK static void sync_warp() {}

  /// The value of the lane named, modulo kLanes: the thread's own.
  template <class T>
  FLYWHEEL_TASK static T shuffle(T value, int) {
    return value;
  }
  /// Calls f(i) for i = 0..n-1, shared out over the threads of the block, which all call it.
  template <class F>
  FLYWHEEL_TASK void for_each(int n, F&& f) const {
    for (int i = 0; i < n; ++i) f(i);
  }
  /// Calls f with the i-th elements of the arrays in reads(), for i = 0..n-1, and stores what it returns as the i-th elements
  /// of those in writes(): a value, or a struct with a member for each of more arrays. n is an integer of any type, or
  /// share_of(n, block). All threads of the block call it; on a GPU they share the elements out, in no order, and load many
  /// before they use the first. A block's next pass goes through memory the other way, as the end of the last is still in L2.
  /// What others wrote is seen after a sync(). It is fastest where all arrays are aligned to 16 bytes, or are as many elements
  /// off, and lie in global memory. Example, y = a x + y:
  ///
  ///   block.stream(n, flywheel::reads(x, y), flywheel::writes(y), [=](float x, float y) { return a * x + y; });
  template <class N, class... In, class... Out, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    if constexpr (detail::check_streamed<F>(Reads<In...>{}, Writes<Out...>{}))
      detail::for_own_elements(n, [&](std::uint64_t i) { detail::stream_element(i, in, out, f); });
  }
  /// The same without outputs: f returns nothing.
  template <class N, class... In, class F>
  FLYWHEEL_TASK void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  /// `init`, combined with what f returns for the i-th elements of the arrays in reads(), i = 0..n-1; every thread gets the
  /// result, of at most 16 bytes. Op is associative and commutative: on a GPU each thread combines those elements that are its
  /// own, and then reduce() their values. Which pairs are combined depends on n and on how the arrays are aligned, so the same
  /// call has the same result to the bit. Example, a dot product:
  ///
  ///   block.stream_reduce(n, flywheel::reads(x, y), 0.0f, Sum{}, [](float x, float y) { return x * y; });
  template <class N, class... In, class T, class Op, class F>
  FLYWHEEL_TASK T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    check_exchanged<T>();
    if constexpr (detail::check_stream_reduce<T, Op, F>(Reads<In...>{}))
      detail::for_own_elements(n,
                               [&](std::uint64_t i) { init = op(init, static_cast<T>(detail::call_for_element(i, in, f))); });
    return init;
  }
  /// Combines one value of each thread with op; every thread gets the result.
  template <class T, class Op>
  FLYWHEEL_TASK T reduce(T value, Op&&) const {
    return value;
  }
  /// The values of ranks 0 to the calling thread's own, combined with op in the order of ranks.
  template <class T, class Op>
  FLYWHEEL_TASK static T inclusive_scan(T value, Op&&) {
    check_exchanged<T>();
    return value;
  }
  /// `init` and the values of the ranks below the calling thread's, combined with op in the order of ranks.
  template <class T, class Op>
  FLYWHEEL_TASK static T exclusive_scan(T, Op&&, std::type_identity_t<T> init) {
    check_exchanged<T>();
    return init;
  }
  /// The value of the thread named, modulo size().
  template <class T>
  FLYWHEEL_TASK static T broadcast(T value, int) {
    check_exchanged<T>();
    return value;
  }
  /// All threads meet as in sync(). Whether `vote` is true in any, or in all; and in how many it is.
  FLYWHEEL_TASK static constexpr bool any(bool vote) { return vote; }
  FLYWHEEL_TASK static constexpr bool all(bool vote) { return vote; }
  FLYWHEEL_TASK static constexpr int count(bool vote) { return vote; }
  /// The votes of the warp's lanes, lane l in bit l; whether any lane's is true, or all are.
  FLYWHEEL_TASK static constexpr std::uint32_t ballot(bool vote) { return vote; }
  FLYWHEEL_TASK static constexpr bool any_warp(bool vote) { return vote; }
  FLYWHEEL_TASK static constexpr bool all_warp(bool vote) { return vote; }
  /// For bodies that use the memory of handoffs as scratch on a GPU. There is none here.
  FLYWHEEL_TASK static void borrow_handoffs() {}
};

}  // namespace flywheel::detail
