// Where the lanes of a warp meet, and where warps meet at named barriers.
#pragma once

#include "support/emulated/mbarrier.hpp"
#include "support/fiber_warp.hpp"

namespace flywheel::testing {

class Meetings {
 public:
  using Post = FiberExecutor::Post;
  using Posts = FiberExecutor::Posts;

  explicit Meetings(Mbarriers::Fail fail) : fail_(std::move(fail)) {}

  FLYWHEEL_UNWATCHED_INLINE Posts& posts(std::uint32_t warp) { return warps_[warp].posts; }

  /// True for the last of the lanes that are still there.
  FLYWHEEL_UNWATCHED bool arrive(std::uint32_t warp, std::uint32_t lane, const Collective& what) {
    Warp& here = warps_[warp];
    if (here.arrived && is_other(here.what, what))
      fail_("lanes of a warp meet at different places: " + lanes_text(here.arrived) + " at " + here.what.text() + ", " +
            lanes_text(1u << lane) + " at " + what.text());
    here.what = what;
    here.arrived |= 1u << lane;
    return complete(here);
  }
  /// What needs all 32 lanes.
  FLYWHEEL_UNWATCHED void check_whole(std::uint32_t warp, const char* what) const {
    if (warps_[warp].left) fail_(std::string(what) + " by a warp of which " + lanes_text(warps_[warp].left) + " have ended");
  }
  /// A lane ends. True if those who wait at __syncwarp() waited only for it.
  bool leave(std::uint32_t warp, std::uint32_t lane) {
    Warp& here = warps_[warp];
    here.left |= 1u << lane;
    if (here.arrived && std::strcmp(here.what.name, "__syncwarp()"))
      fail_("a lane ends while others of its warp are at " + here.what.text());
    return here.arrived && complete(here);
  }
  /// Lanes that have not ended.
  FLYWHEEL_UNWATCHED_INLINE std::uint32_t present(std::uint32_t warp) const { return ~warps_[warp].left; }
  bool all_left() const {
    return std::all_of(std::begin(warps_), std::end(warps_), [](const Warp& warp) { return !~warp.left; });
  }

  /// A named barrier, or a vote there.
  static Collective named(std::uint32_t id, bool vote = false) {
    static constexpr const char* kNames[] = {"named barrier 0",  "named barrier 1",  "named barrier 2",  "named barrier 3",
                                             "named barrier 4",  "named barrier 5",  "named barrier 6",  "named barrier 7",
                                             "named barrier 8",  "named barrier 9",  "named barrier 10", "named barrier 11",
                                             "named barrier 12", "named barrier 13", "named barrier 14", "named barrier 15"};
    return {kNames[id % 16], vote ? sizeof(bool) : 0};
  }
  /// Of a named barrier: what tells it from those of other blocks.
  const void* place(std::uint32_t id) const { return &named_[id % 16]; }
  /// By a whole warp. The warps that meet, once all have come; else 0.
  FLYWHEEL_UNWATCHED std::uint32_t arrive_named(std::uint32_t warp, std::uint32_t id, std::uint32_t threads,
                                                const Collective& what) {
    if (id > 15 || threads % 32 || !threads)
      fail_("named barrier " + std::to_string(id) + " of " + std::to_string(threads) + " threads");
    Named& here = named_[id];
    if (here.warps && here.threads != threads)
      fail_(std::string(what.name) + " of " + std::to_string(threads) + " threads, while others wait there for " +
            std::to_string(here.threads));
    if (here.warps && is_other(here.what, what)) fail_("at " + std::string(what.name) + " some vote and some do not");
    here.threads = threads;
    here.what = what;
    here.warps |= 1u << warp;
    if (static_cast<std::uint32_t>(__builtin_popcount(here.warps)) * 32 < threads) return 0;
    if (here.group && here.group != here.warps)
      fail_("two groups at " + std::string(what.name) + ": warps with " + lanes_text(here.group) + " as bits, now " +
            lanes_text(here.warps));
    here.group = here.warps;
    here.counted = here.votes;
    here.votes = here.warps = 0;
    return here.group;
  }
  /// A thread votes before it arrives. What was counted stays until all have come again, so until all have read it.
  void vote(std::uint32_t id, bool vote) { named_[id % 16].votes += vote; }
  std::uint32_t votes(std::uint32_t id) const { return named_[id % 16].counted; }

 private:
  struct Warp {
    Collective what{};
    std::uint32_t arrived = 0;
    std::uint32_t left = 0;  // lanes that have ended
    Posts posts;
  };
  struct Named {
    std::uint32_t warps = 0;  // that have come
    std::uint32_t group = 0;  // that met last
    std::uint32_t threads = 0;
    std::uint32_t votes = 0;    // of those that have come
    std::uint32_t counted = 0;  // votes of those that met last
    Collective what{};
  };

  /// Mostly they have one name, at one address.
  FLYWHEEL_UNWATCHED_INLINE static bool is_other(const Collective& a, const Collective& b) {
    return (a.name != b.name || a.bytes != b.bytes) && !(a == b);
  }
  FLYWHEEL_UNWATCHED_INLINE static bool complete(Warp& here) {
    if (~(here.arrived | here.left)) return false;
    here.arrived = 0;
    return true;
  }

  Mbarriers::Fail fail_;
  Warp warps_[kEmulatedWarps] = {};
  Named named_[16] = {};
};

/// One mma by all lanes.
template <class Pair>
void multiply_add_lanes(Meetings::Posts& posts) {
  WarpTile<Pair> tile;
  for (std::uint32_t lane = 0; lane < 32; ++lane) tile.add_lane(lane, posts[lane]);
  tile.multiply_add();
  for (std::uint32_t lane = 0; lane < 32; ++lane) tile.give_lane(lane, posts[lane]);
}

}  // namespace flywheel::testing
