// The dispatcher: takes runs from all threads, and sees to it that each goes in flight, has a kernel to run on, and ends.
//
//   Admission       which run goes in flight, and when: slots, room, backlog
//   KernelLifetime  launch, park, and whether the kernel is still there
//   Ending          finished runs, cancelled ones, and those that can no longer succeed
//
// None of the three knows of the dispatcher. Its mutex guards them all: one thread at a time, whoever holds it, writes the
// inbox. A submitter that finds nobody ahead of it does so itself (the short way, about a tenth of a microsecond); all others
// leave the run in the backlog, whose front is lock-free, and the dispatcher's one thread goes on from there.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <thread>

#include "../base/error.hpp"
#include "../kernel/kernel_lifetime.hpp"
#include "admission.hpp"
#include "ending.hpp"

namespace flywheel {

struct DispatcherCounters {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t direct = 0;    // submissions that took the short way
  std::uint64_t launches = 0;
  std::uint64_t parks = 0;
  std::uint64_t peak_live = 0; // most runs in flight at once
};

class Dispatcher {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  Dispatcher(Engine& engine, DeviceState& dev, const Options& options);
  ~Dispatcher();

  /// Takes over the run. Waits while the backlog is full. Throws UsageError after shutdown, DeviceError if the GPU died.
  void submit(RunPtr run);
  /// False if the backlog is full.
  bool try_submit(const RunPtr& run);
  /// A run that a CUDA stream will submit. It fails if the device is lost before: then streams call nobody back.
  void expect(const RunPtr& run);
  /// From a CUDA stream's callback: never throws, never calls CUDA; a run that cannot start fails.
  void submit_from_stream(RunPtr run) noexcept;
  void cancel(const RunPtr& run);
  /// The run's completion word is there: what it had is free for others. Its outcome is collected if it was not, see Run::done().
  void retire(const RunPtr& run);
  /// Runs `action` while no kernel is resident and none is launched; waits for runs in flight first.
  void while_parked(const std::function<void()>& action);
  /// Ends everything within the given time. False if the kernel could not be stopped.
  bool shutdown(std::chrono::milliseconds limit);
  /// After shutdown(): true if its thread is in a launch that does not return. Then nobody waits for the thread, and the
  /// caller keeps all that it uses for ever.
  bool let_go_if_stuck();
  DispatcherCounters counters();

 private:
  using Clock = std::chrono::steady_clock;

  void throw_if_closed() const;
  void join_backlog(RunPtr run);
  void start(const Lock& lock, const RunPtr& run);
  void ensure_kernel(const Lock& lock);

  void loop();
  bool turn(Lock& lock);
  bool gets_on(const Lock& lock, bool moved, Clock::time_point now);
  void sleep(Lock& lock);
  void sleep_until_next_end(Lock& lock);
  void sleep_until_woken(Lock& lock);
  bool has_work(const Lock& lock) const;

  void check_kernel(const Lock& lock);
  void check_start(const Lock& lock);
  void check_progress(const Lock& lock);
  void take_up_end(const Lock& lock);
  void park_if_idle(const Lock& lock);
  bool wait_until_parked(Lock& lock, Clock::time_point limit);

  /// The engine throws when the device is lost or refuses a launch. Then no run can succeed any more, and each says why.
  template <class Action>
  void or_fail_everything(Lock& lock, Action&& action);
  void give_up(Lock& lock, Status status, const char* cause);
  void fail_everything(const Lock& lock, Status status, const std::string& cause);
  void refuse_submissions(Status status, const std::string& cause);

  const std::chrono::milliseconds park_after_;
  const std::chrono::milliseconds shutdown_timeout_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> asleep_{false};  // the thread waits to be woken, see join_backlog()
  std::atomic<bool> closed_{false};  // see throw_if_closed()
  std::string lost_;                 // why no run can succeed any more; not written once `closed_` is set

  // Guarded by mutex_.
  Watchdog watchdog_;
  InboxWriter inbox_;
  Admission admission_;
  KernelLifetime kernel_;
  Ending ending_;
  bool gone_ = false;      // no run can succeed any more
  bool stopping_ = false;  // the thread is to end
  std::uint64_t direct_ = 0;
  AdmissionCounters seen_;             // by the last turn
  Clock::time_point last_progress_{};  // see gets_on()
  Clock::time_point last_check_{};

  std::thread thread_;
};

template <class Action>
void Dispatcher::or_fail_everything(Lock& lock, Action&& action) {
  try {
    action();
  } catch (const LaunchRefused& error) {
    give_up(lock, Status::launch_refused, error.what());
  } catch (const std::exception& error) {
    give_up(lock, Status::device_lost, error.what());
  }
}

}  // namespace flywheel
