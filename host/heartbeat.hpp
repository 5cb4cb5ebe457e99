// The watchdog: reads heartbeats and wait reports in host memory. It makes no CUDA call, so it works when nothing else
// does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/options.hpp"
#include "runtime/world.hpp"

namespace flywheel {

/// A task that runs for longer than the limit.
struct Stall {
  std::uint32_t worker;
  Item item;
  std::uint64_t elapsed_ns;
};

class Watchdog {
 public:
  Watchdog(const World& world, const Options& options);

  /// Tasks that newly exceeded the limit since the last look.
  std::vector<Stall> new_stalls();
  /// What a worker wrote before it gave up waiting and aborted everybody, in words; empty if nobody did. `name_of` names
  /// a task of the run in a slot.
  std::string wait_report(const std::function<std::string(std::uint16_t run, std::uint32_t task)>& name_of) const;
  /// Workers that have signed in since their start.
  std::uint32_t present() const;

 private:
  const World& world_;
  std::uint64_t limit_ns_;
  std::vector<std::uint64_t> last_elapsed_;
};

}  // namespace flywheel
