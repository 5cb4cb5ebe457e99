// How warps copy ahead in stream() and stream_reduce(): each has a ring of stages in scratch memory, which bulk copies fill.
// collectives.cuh includes it.
//
// No register holds what is under way, so memory has as much to do while f computes as while it does not. Tried and measured:
// tuning.md, "Passes over arrays".
#pragma once

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

  /// The same for all warps of the block.
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
    const OwnStages mine(extent, stages, warp_);
    const std::uint64_t own = mine.own;
    const auto element_of = [=, down = backward](std::uint64_t i) {
      return first + mine.stage(down ? own - 1 - i : i) * (Stage::kVectors * kElements);
    };
    for (std::uint32_t i = 0; i < kRingStages; ++i) start<Stage>(i, in, element_of(i));
    for (std::uint64_t i = 0; i < own; ++i) {
      const auto at = static_cast<std::uint32_t>(i % kRingStages);
      // Acquire, block scope: pairs with the copies' complete_tx. They end by themselves, so there is no limit.
      while (!ptx::mbarrier_test(full()[at], i / kRingStages & 1)) {}
      typename Stage::Vectors vectors[Stage::kOfLane];
      Stage::load(vectors, stage(at), lane_);
      __syncwarp();  // orders the loads of all lanes before the copies that come next, together with the fence in start()
      if (i + kRingStages < own) start<Stage>(at, in, element_of(i + kRingStages));
      detail::unroll<Stage::kOfLane>([&](auto step) __attribute__((always_inline)) {
        constexpr std::size_t kStep = decltype(step)::value;
        const auto vector = static_cast<std::uint64_t>(lane_) + kStep * kRingLanes;
        use.template take<GlobalVectors, kElements>(vectors[kStep], element_of(i) + vector * kElements);
      });
    }
    end();
    return mine.of_all * Stage::kVectors;
  }

 private:
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
};

}  // namespace flywheel::detail
