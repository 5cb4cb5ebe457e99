// What the threads of an emulated GPU block do together: the lanes of a warp, and the warps. Of GpuBlock and StoreBlock, see
// device/collectives.cuh; in the same order, so that results are the same to the bit.
#pragma once

#include "device/stream/stream.cuh"
#include "runtime/base/exchanged.hpp"
#include "support/fiber_warp.hpp"

namespace flywheel::testing {

/// Access by vectors, see GlobalVectors. An address that is not aligned to a vector is an error.
struct FiberVectors {
  static bool reaches(const void*) { return true; }
  template <class T, int kElements>
  static void load(bool there, detail::StreamVector<T, kElements>& to, const T* from) {
    to = {};
    if (!there) return;
    check<sizeof(T) * kElements>(from);
    std::memcpy(to.words, from, sizeof(T) * kElements);
  }
  template <class T, int kElements>
  static void store(T* to, const detail::StreamVector<T, kElements>& from) {
    check<sizeof(T) * kElements>(to);
    std::memcpy(to, from.words, sizeof(T) * kElements);
  }

 private:
  template <std::size_t kBytes>
  static void check(const void* at) {
    if (reinterpret_cast<std::uintptr_t>(at) % kBytes)
      FiberExecutor::current().fail("stream() takes a vector that is not aligned");
  }
};

/// See WarpLanes.
struct FiberLanes {
  static constexpr int kLanes = 32;
  static int lane() { return static_cast<int>(FiberExecutor::current().lane()); }
  static void sync_warp() { FiberExecutor::current().meet({"sync_warp()"}); }
  template <class T>
  static T shuffle_xor(T value, int mask) {
    return fiber_exchange("shuffle_xor()", value, static_cast<std::uint32_t>(lane() ^ mask) % 32);
  }
  template <class T>
  static T shuffle(T value, int lane) {
    return fiber_exchange("shuffle()", value, static_cast<std::uint32_t>(lane) % 32);
  }
  static std::uint32_t ballot(bool vote) { return fiber_ballot("ballot()", vote); }
  static bool any_warp(bool vote) { return fiber_ballot("any_warp()", vote) != 0; }
  static bool all_warp(bool vote) { return fiber_ballot("all_warp()", vote) == ~0u; }

 protected:
  template <class T>
  static T shuffle_up(const char* name, T value, int distance) {
    return fiber_exchange(name, value, static_cast<std::uint32_t>(lane() < distance ? lane() : lane() - distance));
  }
  /// As detail::reduce_lanes() of device/collectives.cuh.
  template <class T, class Op>
  static T reduce_lanes(const char* name, T value, int first, std::uint32_t threads, Op&& op) {
    for (int distance = kLanes / 2; distance; distance /= 2) {
      const int from = lane() + distance < kLanes ? lane() + distance : lane();
      const T other = fiber_exchange(name, value, static_cast<std::uint32_t>(from));
      if (static_cast<std::uint32_t>(first + lane() + distance) < threads) value = op(value, other);
    }
    return value;
  }
  template <class T, class Op>
  static T scan_lanes(const char* name, T value, Op&& op) {
    for (int distance = 1; distance < kLanes; distance *= 2) {
      const T before = shuffle_up(name, value, distance);
      if (lane() >= distance) value = op(before, value);
    }
    return value;
  }
};

/// Where warps leave values for each other, as in BlockShared.
struct FiberPartials {
  unsigned char bytes[2][kFiberComputeWarps][detail::kMostExchanged];
};

/// See ComputeThreads.
class FiberThreads : public FiberLanes {
 public:
  explicit FiberThreads(FiberPartials& partials) : partials_(partials) {}

  static constexpr int kWarps = kFiberComputeWarps;
  static int rank() { return static_cast<int>(FiberExecutor::current().thread()); }
  static int warp() { return rank() / 32; }
  static constexpr int size() { return kFiberComputeThreads; }
  static bool leader() { return rank() == 0; }
  static void sync() { FiberExecutor::current().meet_all(); }

  template <class F>
  void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    FiberExecutor::current().meet({"for_each()"});
  }

  template <class N, class... In, class... Out, class F>
  void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    detail::stream_part<FiberVectors, kFiberComputeThreads>(rank(), n, in, out, f);
    FiberExecutor::current().meet({"stream()"});
  }
  template <class N, class... In, class F>
  void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  template <class N, class... In, class T, class Op, class F>
  T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) {
    detail::check_exchanged<T>();
    T total = init;
    const std::uint32_t threads = detail::reduce_part<FiberVectors, kFiberComputeThreads>(rank(), n, in, total, op, f);
    pass_on(reduce_lanes("stream_reduce()", total, warp() * 32, threads, op), lane() == 0);
    return append_warps(init, 0, static_cast<int>((threads + 31) / 32), op);
  }

  /// A tree over each warp's lanes, then warp after warp.
  template <class T, class Op>
  T reduce(T value, Op&& op) {
    detail::check_exchanged<T>();
    for (int distance = kLanes / 2; distance; distance /= 2) {
      const int from = lane() + distance < kLanes ? lane() + distance : lane();
      value = op(value, fiber_exchange("reduce()", value, static_cast<std::uint32_t>(from)));
    }
    pass_on(value, lane() == 0);
    return append_warps(passed_on<T>(0), 1, kWarps, op);
  }
  template <class T, class Op>
  T inclusive_scan(T value, Op&& op) {
    detail::check_exchanged<T>();
    value = scan_lanes("inclusive_scan()", value, op);
    pass_on(value, lane() == kLanes - 1);
    return warp() ? op(append_warps(passed_on<T>(0), 1, warp(), op), value) : value;
  }
  template <class T, class Op>
  T exclusive_scan(T value, Op&& op, std::type_identity_t<T> init) {
    detail::check_exchanged<T>();
    value = scan_lanes("exclusive_scan()", value, op);
    const T before = shuffle_up("exclusive_scan()", value, 1);
    pass_on(value, lane() == kLanes - 1);
    const T first = append_warps(init, 0, warp(), op);
    return lane() ? op(first, before) : first;
  }
  template <class T>
  T broadcast(T value, int from_rank) {
    detail::check_exchanged<T>();
    const int from = static_cast<int>(static_cast<std::uint32_t>(from_rank) % kFiberComputeThreads);
    pass_on(value, rank() == from);
    return passed_on<T>(from / kLanes);
  }
  static int count(bool vote) { return static_cast<int>(FiberExecutor::current().meet_all(kCountAll, vote)); }
  static bool any(bool vote) { return count(vote) != 0; }
  static bool all(bool vote) { return count(vote) == size(); }

 private:
  template <class T>
  void pass_on(const T& value, bool mine) {
    turn_ ^= 1;
    if (mine) std::memcpy(partials_.bytes[turn_][warp()], &value, sizeof(T));
    sync();
  }
  template <class T>
  T passed_on(int warp) const {
    T value;
    std::memcpy(&value, partials_.bytes[turn_][warp], sizeof(T));
    return value;
  }
  template <class T, class Op>
  T append_warps(T total, int first, int end, Op&& op) const {
    for (int w = first; w < end; ++w) total = op(total, passed_on<T>(w));
    return total;
  }

  FiberPartials& partials_;
  std::uint32_t turn_ = 0;
};

}  // namespace flywheel::testing
