// How warps copy ahead in stream() and stream_reduce(): each has a ring of stages in scratch memory, which bulk copies fill.
// collectives.cuh includes it.
//
// No register holds what is under way, so memory has as much to do while f computes as while it does not. Tried and measured:
// tuning.md, "Passes over arrays".
#pragma once

#include <flywheel/detail/platform.cuh>
#include <flywheel/detail/ptx.cuh>
#include "../../runtime/compiled/operands.hpp"
#include "stream.cuh"

namespace flywheel::detail {

__device__ unsigned char* page_memory();  // defined in roles.cuh

/// Access to global memory by vectors, for passes over arrays. Loads and stores are plain and weak: they see what a body's own
/// see, and the task that reads next what was stored may find it in L2.
struct GlobalVectors {
  __device__ static bool reaches(const void* p) { return ptx::is_global(p); }
  template <class T, int kElements>
  __device__ __forceinline__ static void load(bool there, StreamVector<T, kElements>& to, const T* from) {
    ptx::load_vector_if<StreamVector<T, kElements>::kBytes>(there, to.words, from);
  }
  template <class T, int kElements>
  __device__ __forceinline__ static void store(T* to, const StreamVector<T, kElements>& from) {
    ptx::store_vector<StreamVector<T, kElements>::kBytes>(to, from.words);
  }
};

inline constexpr int kRingLanes = 32;  // of a warp
inline constexpr std::uint32_t kRingStages = 4;
inline constexpr std::uint32_t kRingStageBytes = 2048;  // of all arrays that a pass reads, at most
inline constexpr std::uint32_t kRingAlign = 128;        // of a stage: copies to other places take longer
/// The stages of a block's warps.
struct alignas(kRingAlign) StageRing {
  unsigned char stages[kWorkerWarps][kRingStages][kRingStageBytes];
  std::uint64_t full[kWorkerWarps][kRingStages];
  std::uint64_t first[kWorkerWarps][kRingStages];  // the element that a stage begins with
};
inline constexpr std::uint32_t kRingBytes = sizeof(StageRing) + kRingAlign - 16;  // in which they fit

/// Access to vectors of a stage, see ByElement.
struct StageVectors {
  template <class T, int kElements>
  __device__ __forceinline__ static void load(bool, StreamVector<T, kElements>& to, const T* from) {
    constexpr std::size_t kBytes = StreamVector<T, kElements>::kBytes;
    const T* const at = ptx::as_shared(from, page_memory());
    if constexpr (kBytes < 4) {  // zeros behind them
      using Small = std::conditional_t<kBytes == 1, std::uint8_t, std::uint16_t>;
      to.words[0] = *reinterpret_cast<const Small*>(at);
    } else {  // in words: from bytes the compiler would put each together again
      struct alignas(kBytes) Vector {
        std::uint32_t words[kBytes / 4];
      };
      const Vector vector = *reinterpret_cast<const Vector*>(at);
      detail::unroll<kBytes / 4>([&](auto word) __attribute__((always_inline)) {
        to.words[decltype(word)::value] = vector.words[decltype(word)::value];
      });
    }
  }
};

/// One warp's ring. All lanes of the warp have a copy.
class WarpRing {
 public:
  const bool backward;  // the direction of all passes

  /// `end`: behind kRingBytes of shared memory, aligned to 16 bytes, or null: then no pass uses it.
  __device__ WarpRing(unsigned char* end, int warp, int lane, bool goes_backward)
      : backward(goes_backward),
        warp_(warp),
        lane_(lane) {
    if (!end) return;
    end -= ptx::shared_address(end) % kRingAlign;
    ring_ = reinterpret_cast<StageRing*>(end) - 1;
  }

  /// From now on groups of stages of a share go to whoever comes for them. `taken`: how many have been, in the next pass.
  __device__ void share_out(std::uint64_t* taken) { taken_ = taken; }

  /// Whether a pass may use it, and whether one has. The same for all warps of the block.
  __device__ bool is_there() const { return ring_ != nullptr; }
  __device__ bool was_used() const { return used_; }

  /// A warp: takes whole stages of a pass over `count` vectors, from element `first` on, the next of each round of all warps of
  /// all workers. Returns how many vectors they take; 0 of a pass that gives them too little to do.
  template <int kElements, class Extent, class... In, class Use>
  __device__ std::uint64_t pass(const Extent& extent, const Reads<In...>& in, std::uint64_t first, std::uint64_t count,
                                Use& use) {
    using Stage = StageOf<kElements, std::index_sequence_for<In...>, In...>;
    if (!ring_) return 0;
    const std::uint64_t stages = count / Stage::kVectors;
    const bool is_long = stages >= std::uint64_t{kRingStages * kWorkerWarps} * extent.workers &&
                         stages * Stage::kBytes >= std::uint64_t{ptx::kLeastCopiedAhead} * extent.workers;
    if (!is_long || !Stage::reaches(in, first)) return 0;
    begin();
    used_ = true;
    if constexpr (std::is_same_v<Extent, Share>)
      if (taken_ && stages / kGroup < ~0u) {
        const auto groups = static_cast<std::uint32_t>(stages / kGroup);
        pass_shared<Stage, kElements>(in, first, groups, use);
        return std::uint64_t{groups} * kGroup * Stage::kVectors;
      }
    constexpr std::uint64_t kElementsOfStage = Stage::kVectors * kElements;
    const OwnStages mine(extent, stages, warp_);
    const std::uint64_t apart = mine.apart * kElementsOfStage;
    const Span own{first + mine.stage(backward ? mine.own - 1 : 0) * kElementsOfStage, mine.own, backward ? -apart : apart};
    pass_by<Stage, kElements>(in, use, own, [](Span&) { return false; });
    return mine.of_all * Stage::kVectors;
  }

 private:
  static constexpr std::uint32_t kGroup = 8;  // stages that a warp takes at once of a pass that is shared out: see tuning.md

  /// Stages that a warp takes one after the other: the first element of the next one, how many, and elements from one to the
  /// next, which may be backward.
  struct Span {
    std::uint64_t element, stages, apart;
  };

  /// Copies stages ahead and takes them. more(next): sets the begin and the number of those that come next; false if there are
  /// none, from then on.
  template <class Stage, int kElements, class... In, class Use, class More>
  __device__ void pass_by(const Reads<In...>& in, Use& use, Span next, More&& more) {
    std::uint32_t under_way = 0;
    const auto start_next = [&](std::uint32_t at) __attribute__((always_inline)) {
      if (next.stages == 0 && !more(next)) return false;
      start<Stage>(at, in, next.element);
      next.element += next.apart;
      --next.stages;
      return true;
    };
    while (under_way < kRingStages && start_next(under_way)) ++under_way;
    __syncwarp();  // orders what lane 0 wrote of the stages before the loads of the other lanes
    for (std::uint32_t i = 0; under_way; ++i) {
      const std::uint32_t at = i % kRingStages;
      // Acquire, block scope: pairs with the copies' complete_tx. They end by themselves, so there is no limit.
      while (!ptx::mbarrier_test(full()[at], i / kRingStages & 1)) {}
      typename Stage::Vectors vectors[Stage::kOfLane];
      Stage::load(vectors, stage(at), lane_);
      const std::uint64_t element = ring_->first[warp_][at];
      // Orders the loads of all lanes before the copies that come next, together with the fence in start().
      __syncwarp();
      if (!start_next(at)) --under_way;  // then none comes any more, and the others land in the order of their places
      detail::unroll<Stage::kOfLane>([&](auto step) __attribute__((always_inline)) {
        constexpr std::size_t kStep = decltype(step)::value;
        const auto vector = static_cast<std::uint64_t>(lane_) + kStep * kRingLanes;
        use.template take<GlobalVectors, kElements>(vectors[kStep], element + vector * kElements);
      });
    }
    end();
  }

  /// A pass whose groups of stages go to whoever comes for them, in the order in which they lie in memory. SMs get memory at
  /// different rates, and with shares of their own the fast ones run ahead, which makes memory slower for all: see tuning.md.
  template <class Stage, int kElements, class... In, class Use>
  __device__ void pass_shared(const Reads<In...>& in, std::uint64_t first, std::uint32_t groups, Use& use) {
    constexpr std::uint64_t kApart = Stage::kVectors * kElements;
    std::uint32_t group = 0;  // lane 0: the next one, asked for ahead of the time, since the answer takes a trip to L2
    // Relaxed: who has a group orders nothing. What it reads there was written before the boundary in front of the pass, and
    // what it writes is published at the next one. Pairs with the others', and with zero_shared_passes().
    const auto claim = [&] {
      if (lane_ == 0) group = static_cast<std::uint32_t>(ThreadPlatform::device(*taken_).fetch_add(1, Order::relaxed));
    };
    claim();
    pass_by<Stage, kElements>(in, use, {0, 0, backward ? -kApart : kApart}, [&](Span& next) {
      const std::uint32_t mine = __shfl_sync(~0u, group, 0);
      if (mine >= groups) return false;
      claim();
      const std::uint64_t begin = std::uint64_t{backward ? groups - 1 - mine : mine} * kGroup;
      next.element = first + (backward ? begin + kGroup - 1 : begin) * kApart;
      next.stages = kGroup;
      return true;
    });
  }

  /// Which stages are a warp's: those of a round go to the warps of the first worker, then to those of the next.
  struct OwnStages {
    std::uint64_t own, of_all, first, apart;
    __device__ OwnStages(const Whole&, std::uint64_t stages, int warp)
        : own((stages - static_cast<std::uint64_t>(warp) + kWorkerWarps - 1) / kWorkerWarps),
          of_all(stages),
          first(static_cast<std::uint64_t>(warp)),
          apart(kWorkerWarps) {}
    /// Of a share only whole rounds: all workers have as many.
    __device__ OwnStages(const Share& share, std::uint64_t stages, int warp)
        : own(stages / (share.workers * kWorkerWarps)),
          of_all(own * share.workers * kWorkerWarps),
          first(share.worker * kWorkerWarps + static_cast<std::uint64_t>(warp)),
          apart(share.workers * kWorkerWarps) {}
    __device__ std::uint64_t stage(std::uint64_t i) const { return first + i * apart; }
  };
  template <int kElements, class Indices, class... In>
  struct StageOf;
  /// The vectors of each array in a stage: those of a lane are kRingLanes apart.
  template <int kElements, std::size_t... I, class... In>
  struct StageOf<kElements, std::index_sequence<I...>, In...> {
    using Vectors = VectorList<kElements, std::index_sequence<I...>, In...>;
    static constexpr int kOfLane = sizeof...(In) == 1 ? 4 : sizeof...(In) == 2 ? 2 : 1;
    static constexpr std::uint32_t kVectors = kOfLane * kRingLanes;
    template <class T>
    static constexpr std::uint32_t kBytesOf = kVectors* kElements * sizeof(T);
    static constexpr std::uint32_t kBytes = (kBytesOf<In> + ...);
    static_assert(kBytes <= kRingStageBytes);
    /// Bytes of the arrays in front of one of them.
    __device__ static constexpr std::uint32_t begin_of(std::size_t array) { return ((I < array ? kBytesOf<In> : 0) + ...); }
    /// Whether bulk copies reach the arrays from element `first` on.
    __device__ static bool reaches(const Reads<In...>& in, std::uint64_t first) {
      return ((reinterpret_cast<std::uintptr_t>(detail::array<I>(in) + first) % 16 == 0) && ...);
    }
    __device__ static void copy(unsigned char* to, const Reads<In...>& in, std::uint64_t element, std::uint64_t& full) {
      // Release, block scope, and pairs with the test in pass(): see expect_bytes() and bulk_copy().
      ptx::expect_bytes(full, kBytes);
      (ptx::bulk_copy(to + begin_of(I), detail::array<I>(in) + element, kBytesOf<In>, full), ...);
    }
    __device__ static void load(Vectors (&to)[kOfLane], const unsigned char* stage, int lane) {
      const Reads<In...> from{{{reinterpret_cast<const In*>(stage + begin_of(I))}...}};
      detail::unroll<kOfLane>([&](auto step) __attribute__((always_inline)) {
        constexpr int kStep = static_cast<int>(decltype(step)::value);
        const auto vector = static_cast<std::uint64_t>(lane + kStep * kRingLanes);
        to[kStep].template load<StageVectors>(true, from, vector * kElements);
      });
    }
  };

  __device__ std::uint64_t (&full() const)[kRingStages] { return ring_->full[warp_]; }
  __device__ unsigned char* stage(std::uint32_t at) const { return ring_->stages[warp_][at]; }

  /// The block's sync() orders what other tasks did with this memory, and the global memory that they wrote, before this; the
  /// fences go on from there to the copies.
  __device__ void begin() const {
    if (lane_ == 0) {
      // No order of its own: published to the copies by the next line, and to the other lanes by __syncwarp().
      for (std::uint64_t& mine : full()) ptx::mbarrier_init(mine, 1);
      ptx::publish_mbarriers();
      ptx::fence_global_for_bulk_copies();
    }
    __syncwarp();  // orders the barriers before the tests of the other lanes
  }
  template <class Stage, class... In>
  __device__ void start(std::uint32_t at, const Reads<In...>& in, std::uint64_t element) const {
    if (lane_ != 0) return;
    ring_->first[warp_][at] = element;
    ptx::fence_shared_for_bulk_copies();  // see there: after the loads of all lanes
    Stage::copy(stage(at), in, element, full()[at]);
  }
  /// The memory is anybody's again after a sync() of all warps.
  __device__ void end() const {
    __syncwarp();  // orders the tests of all lanes before the end of the barriers
    // No order: begin() of the next pass comes after the next line.
    if (lane_ == 0)
      for (std::uint64_t& mine : full()) ptx::mbarrier_invalidate(mine);
    __syncwarp();  // orders it before what the lanes do with this memory next
  }

  StageRing* ring_ = nullptr;
  int warp_, lane_;
  bool used_ = false;
  std::uint64_t* taken_ = nullptr;
};

}  // namespace flywheel::detail
