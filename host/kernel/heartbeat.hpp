// The watchdog: reads heartbeats and wait reports in host memory. It makes no CUDA call, so it works when nothing else
// does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../base/options.hpp"
#include "../../runtime/records/device_state.hpp"

namespace flywheel {

/// A task that runs for longer than the limit.
struct Stall {
  std::uint32_t worker;
  Item item;
  std::uint64_t elapsed_ns;
};

/// What the watchdog has to know of the run in a slot.
struct WatchedRun {
  std::uint32_t generation = 0;                // 0: there is none
  const std::vector<bool>* in_gang = nullptr;  // of its tasks, by item; null if none waits for another
};

/// A task's time is what passes while the process runs and nobody keeps the task waiting:
///   - What lies between two looks counts for a fraction of the limit at most, see most_between_looks_. A look comes each
///     millisecond; a longer time means that the process was stopped, or that its threads were not scheduled.
///   - A task of a gang waits for its partners. While a worker has not joined the run, its time does not count, unless a
///     task that keeps that worker has itself exceeded the limit; and it begins anew when another worker begins a task of
///     the run. On a GPU only a worker that has been in a slow task of another run since before is seen to be elsewhere.
/// A GPU's own clock tells the time of its tasks; for how long the host was stopped meanwhile is taken off, since they may have
/// waited for it. Such a task is told once it beats after a look that found it too long: so it
/// is not over, and it is one of the run that was in the slot at that look.
class Watchdog {
 public:
  using RunIn = std::function<WatchedRun(std::uint16_t slot)>;

  Watchdog(const DeviceState& dev, const Options& options);

  /// Tasks that newly exceeded the limit since the last look, those that wait for partners last. The caller keeps runs from
  /// leaving their slots meanwhile.
  std::vector<Stall> new_stalls(const RunIn& run_in, std::uint64_t now_ns = CpuPlatform::now_ns());
  /// What a worker wrote before it gave up waiting and aborted everybody, in words; empty if nobody did. `name_of` names
  /// a task of the run in a slot.
  std::string wait_report(const std::function<std::string(std::uint16_t run, std::uint32_t task)>& name_of) const;
  /// Workers that have signed in since their start.
  std::uint32_t present() const;

 private:
  /// What one look read of a heartbeat.
  struct Pulse {
    std::uint64_t item = 0;
    std::uint64_t elapsed_ns = 0;
    std::uint64_t started_ns = 0;
    std::uint64_t joined = 0;
    std::uint64_t part_ns = 0;   // when the last body of that run began; 0: none, or not known
    std::uint32_t beats = 0;
    bool slow = false;   // item, elapsed_ns and beats belong together
    bool runs = false;   // item and started_ns do
  };
  /// A worker's task, as far as it is known.
  struct Watched {
    Pulse pulse;                    // of the last look that changed something
    std::uint32_t generation = 0;   // of the task's run
    std::uint64_t counted_ns = 0;   // of its time
    std::uint64_t excused_ns = 0;   // a GPU's task: elapsed_ns when it was last kept waiting
    std::uint64_t others_began = 0; // a gang's: when another worker last began a task of the run
    bool told = false;
  };

  static Pulse read(Heartbeat& heart);
  bool look_at_body(std::uint32_t worker, const WatchedRun& run, std::uint64_t now_ns);
  bool look_at_beat(std::uint32_t worker, const WatchedRun& run, std::uint64_t stopped_ns);
  std::uint64_t note_awake(std::uint64_t now_ns);
  bool is_held_up(std::uint32_t worker, const WatchedRun& run);
  bool is_elsewhere(std::uint32_t other, const Pulse& than) const;

  const DeviceState& dev_;
  std::uint64_t limit_ns_;
  std::uint64_t most_between_looks_;
  std::uint64_t last_look_ = 0;
  std::uint64_t awake_ns_ = 1;
  std::vector<Pulse> pulses_;  // of this look
  std::vector<Watched> watched_;
};

}  // namespace flywheel
