// The watchdog finds tasks that run for too long, and reads the reports of waits that ran out of time. It reads
// heartbeats and wait reports in host memory and makes no CUDA call, so it works when the device does not respond. The
// dispatcher owns it; ending and the kernel's lifetime use it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../../runtime/records/device_state.hpp"
#include "../base/options.hpp"

namespace flywheel::detail {

/// A task that has run for longer than Options::stall_limit.
struct Stall {
  std::uint32_t worker;
  Item item;
  std::uint64_t elapsed_ns;
};

/// What the watchdog needs to know of the run in a slot.
struct WatchedRun {
  std::uint32_t generation = 0;                // 0: the slot is empty
  const std::vector<bool>* in_gang = nullptr;  // whether each task is in a gang, by task index; null: none is
};

/// Measures how long each worker's current task has run, and finds those over the limit. A task's time only counts
/// while the process runs and while no other task keeps it waiting:
/// - Between two looks, at most most_between_checks_ counts, a fraction of the limit. The dispatcher looks about once
///   per millisecond. A longer gap means that the process was stopped, or that its threads were not scheduled.
/// - A task of a gang waits for the other tasks of the gang. While a worker has not joined the run, the time of the
///   gang's tasks does not count, unless that worker is kept by a task which has itself exceeded the limit. The count
///   starts again at 0 when another worker begins a task of the run. On a GPU, a worker is only known to be in another
///   run if it has been in a slow task of that run since before this task began.
///
/// A CPU worker cannot report while a body runs, so the watchdog reads the clock for it, see check_body(). A GPU
/// worker reports the time of a slow task by its own clock, see check_beat(). The time for which the host process was
/// stopped is subtracted, because the task may have waited for the host. A GPU task is reported at the second look that
/// finds it over the limit, if its worker has written a heartbeat in between: then the task is still running, and it
/// belongs to the run that was in the slot at the first look.
class Watchdog {
 public:
  using RunIn = std::function<WatchedRun(std::uint16_t slot)>;

  Watchdog(const DeviceState& dev, const Options& options);

  /// The tasks that have exceeded the limit since the last call; tasks of gangs come last. No run may leave its slot
  /// during the call.
  std::vector<Stall> new_stalls(const RunIn& run_in, std::uint64_t now_ns = CpuPlatform::now_ns());
  /// The reports of workers that ran out of time in a wait and aborted the runtime, as text; empty if there is none.
  /// `name_of` names a task of the run in a slot.
  std::string wait_report(const std::function<std::string(std::uint16_t run, std::uint32_t task)>& name_of) const;
  /// How long the task that has run for longest has run, at the last call of new_stalls(). On a GPU tasks count from 20 ms on.
  std::uint64_t longest_task_ns() const { return longest_task_ns_; }
  /// The number of workers that have started.
  std::uint32_t present() const;

 private:
  /// A worker's heartbeat, as one look has read it.
  struct Pulse {
    std::uint64_t item = 0;
    std::uint64_t elapsed_ns = 0;
    std::uint64_t started_ns = 0;
    std::uint64_t joined = 0;
    std::uint64_t part_ns = 0;  // when the last body of that run began; 0: none has, or not known
    std::uint32_t beats = 0;
    bool slow = false;  // state is slow; item, elapsed_ns and beats belong to one heartbeat
    bool runs = false;  // a CPU worker's body runs; item and started_ns belong to it
  };
  /// What the watchdog remembers of a worker's task.
  struct Watched {
    Pulse pulse;                     // of the last look at which it changed
    std::uint32_t generation = 0;    // of the task's run
    std::uint64_t counted_ns = 0;    // the time of the task that counts
    std::uint64_t uncounted_ns = 0;  // GPU: the part of elapsed_ns that does not count
    std::uint64_t others_began = 0;  // gang: when another worker last began a task of the run
    bool told = false;               // reported by new_stalls()
  };

  static Pulse read(Heartbeat& heart);
  bool check_body(std::uint32_t worker, const WatchedRun& run, std::uint64_t now_ns);
  bool check_beat(std::uint32_t worker, const WatchedRun& run, std::uint64_t stopped_ns);
  std::uint64_t note_awake(std::uint64_t now_ns);
  bool is_held_up(std::uint32_t worker, const WatchedRun& run);
  bool is_elsewhere(std::uint32_t other, const Pulse& than) const;

  const DeviceState& dev_;
  std::uint64_t limit_ns_;
  std::uint64_t most_between_checks_;
  std::uint64_t last_check_ = 0;
  std::uint64_t awake_ns_ = 1;
  std::uint64_t longest_task_ns_ = 0;
  std::vector<Pulse> pulses_;  // of this look, by worker
  std::vector<Watched> watched_;
};

}  // namespace flywheel::detail
