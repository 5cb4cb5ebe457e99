// What the blocks of one launch on an emulated GPU share, and what tells their threads apart.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include "runtime/base/platform.hpp"
#include "support/emulated/races.hpp"
#include "support/emulated/turns.hpp"
#include "support/internals.hpp"

/// threadIdx, blockIdx and gridDim, of the fiber that runs.
struct EmulatedIndex {
  std::uint32_t x = 0, y = 0, z = 0;
};
inline thread_local EmulatedIndex threadIdx, blockIdx, gridDim;

namespace flywheel::testing {

/// What the blocks of a launch share.
class EmulatedGrid {
 public:
  /// The first error of any block ends all of them.
  void report(const std::string& text) {
    std::scoped_lock lock(mutex_);
    if (!broken_) why_ = text + " [FLYWHEEL_SEED=" + std::to_string(seed) + "]";
    broken_ = true;
  }
  bool broken() const { return broken_; }
  std::string why() const {
    std::scoped_lock lock(mutex_);
    return why_;
  }
  bool aborted() const { return abort && AtomicRef<std::uint64_t, Scope::device>(*abort).load(Order::relaxed) != 0; }

  std::uint64_t seed = 0;          // that repeats it, as far as blocks do not wait for one another
  std::uint64_t* abort = nullptr;  // the runtime's
  EmulatedPace pace;
  std::uint32_t lanes_apart = wanted_lanes_apart();

 private:
  static std::uint32_t wanted_lanes_apart() {
    const char* const wanted = std::getenv("FLYWHEEL_LANES_APART");
    return wanted ? std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::atoi(wanted)), 1, 32) : kLanesApart;
  }

  std::atomic<bool> broken_ = false;
  mutable std::mutex mutex_;
  std::string why_;
};

}  // namespace flywheel::testing
