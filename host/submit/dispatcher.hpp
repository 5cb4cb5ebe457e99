// The dispatcher takes runs from all threads, and makes sure that each goes in flight, has a kernel to run on, and
// ends. A runtime's core owns it. Its mutex guards its three parts, which do not know the dispatcher:
//
//   Admission       which run goes in flight, and when: slots, room, backlog
//   KernelLifetime  launch and park, and whether the kernel still runs
//   Ending          runs that have finished, are cancelled, or can no longer succeed
//
// Runs are written to the inbox under the mutex; single tasks take an entry of it without. A thread that submits while the
// backlog is empty does that itself (the direct path, about 0.1 us). Otherwise it leaves the run in the backlog's lock-free
// queue, and the dispatcher's thread does the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "../base/error.hpp"
#include "../kernel/kernel_lifetime.hpp"
#include "../single/single_tasks.hpp"
#include "admission.hpp"
#include "ending.hpp"

namespace flywheel::detail {

/// Counts since the start.
struct DispatcherCounters {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t direct = 0;  // submissions on the direct path
  std::uint64_t launches = 0;
  std::uint64_t parks = 0;
  std::uint64_t yields = 0;
  std::uint64_t peak_live = 0;  // most runs in flight at once
};

/// All public functions are thread-safe.
class Dispatcher {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  Dispatcher(Engine& engine, DeviceState& dev, const Options& options);
  ~Dispatcher();

  /// Submits the run. Waits while the backlog is full. Throws UsageError after shutdown(), DeviceError if the device is
  /// lost.
  void submit(RunPtr run);
  /// Like submit(), but returns false if the backlog is full.
  bool try_submit(const RunPtr& run);
  /// Submits a single task, without the mutex. Waits while all slots are taken. Throws like submit().
  std::shared_ptr<SingleTask> submit(const TaskRecord& record, std::type_index type, Priority priority);
  SingleTasks& singles() { return singles_; }
  /// Cancels a single task.
  void cancel(const SingleTask& task);
  /// Announces a run that a CUDA stream will submit. If the device is lost before, streams make no callbacks any more,
  /// so such a run fails.
  void expect(const RunPtr& run);
  /// Submits a run from a CUDA stream's callback. It never throws and makes no CUDA call; a run that cannot start
  /// fails.
  void submit_from_stream(RunPtr run) noexcept;
  /// Adds a listener to a submitted run: at its end, or at once if it has ended, the listener is told.
  void listen(const RunPtr& run, Listener listener);
  /// Cancels the run, see Run::cancel().
  void cancel(const RunPtr& run);
  /// Frees the slot, counters and room of a run whose completion word is written. Collects its outcome first if
  /// Run::done() has not.
  void retire(const RunPtr& run);
  /// The trace of a batch whose parts are done for the program; null: there is none so far. It stays where it is.
  const Trace* trace_of(const TracedWork& batch);
  /// Retires all runs that have ended: for threads that wait for what those use. Throws like submit().
  void retire_finished();
  /// Runs `action` while no kernel is resident or about to be launched; runs in flight are suspended. Throws CapacityError
  /// if the kernel does not end within Options::shutdown_timeout.
  void while_parked(const std::function<void()>& action);
  /// The same after all runs and single tasks in flight have ended, and further ones wait: for actions that move what they
  /// use.
  void while_empty(const std::function<void()>& action);
  /// Lets the kernel yield once, see Runtime::yield().
  void yield();
  /// From pause() to unpause() no kernel is resident; runs in flight are suspended. Pauses nest. Waits for the kernel to end.
  /// Throws DeviceError if it does not end within Options::shutdown_timeout; then there is no pause.
  void pause();
  void unpause();
  /// Ends all runs and parks the kernel. Runs that have not ended after `limit` are cancelled. Returns what could not
  /// be stopped, see KernelLifetime::what_stays(); empty: nothing.
  std::string shutdown(std::chrono::milliseconds limit);
  /// After shutdown(): true if the dispatcher's thread is in a launch that does not return. Then the thread is
  /// detached, and the caller must keep everything that it uses until the process ends.
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
  bool admit_arrivals(const Lock& lock);
  bool gets_on(const Lock& lock, bool moved, Clock::time_point now);
  void sweep_singles(const Lock& lock, Clock::time_point now);
  void sleep(Lock& lock);
  void sleep_until_next_end(Lock& lock);
  void sleep_until_notified(Lock& lock);
  bool has_work(const Lock& lock) const;

  void check_kernel(const Lock& lock);
  void check_start(const Lock& lock);
  void check_progress(const Lock& lock);
  void take_up_end(const Lock& lock);
  void park_if_idle(const Lock& lock);
  bool anything_live(const Lock& lock) const;
  void note_attention(const Lock& lock);
  void give_way(const Lock& lock, Clock::time_point now);
  bool is_about_to_change(const Lock& lock, Clock::time_point now) const;
  void do_while_parked(Lock& lock, Clock::time_point limit, const std::function<void()>& action);
  void require_parked(bool parked) const;
  bool wait_until_empty(Lock& lock, Clock::time_point limit);
  bool wait_until_parked(Lock& lock, Clock::time_point limit);

  /// Calls `action`. If the engine throws because the device is lost or a launch is refused, all runs fail, each with
  /// the cause.
  template <class Action>
  void or_fail_everything(Lock& lock, Action&& action);
  void give_up(Lock& lock, Status status, const char* cause);
  void fail_everything(const Lock& lock, Status status, const std::string& cause);
  void refuse_submissions(Status status, const std::string& cause);

  const std::chrono::milliseconds park_after_;
  const std::chrono::milliseconds shutdown_timeout_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> asleep_{false};  // the thread waits on wake_; see join_backlog()
  std::atomic<bool> closed_{false};  // see throw_if_closed()
  /// A kernel is resident and has not been told to park: it reads what is written to the inbox. See submit(record).
  std::atomic<bool> attentive_{false};
  std::atomic<bool> held_{false};  // single tasks wait to be submitted; a hint, see while_empty()
  std::string lost_;               // why no run can succeed; not written once closed_ is true

  // Guarded by mutex_.
  Watchdog watchdog_;
  InboxWriter inbox_;
  SingleTasks singles_;             // not guarded
  std::uint64_t singles_seen_ = 0;  // submitted by the last turn
  Admission admission_;
  KernelLifetime kernel_;
  Ending ending_;
  bool gone_ = false;      // no run can succeed any more
  bool stopping_ = false;  // the thread must end
  std::uint64_t direct_ = 0;
  AdmissionCounters seen_;             // at the last turn
  Clock::time_point last_progress_{};  // see gets_on()
  Clock::time_point last_check_{}, last_sweep_{};

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

}  // namespace flywheel::detail
