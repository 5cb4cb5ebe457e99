// The pump: lets runs in, takes finished ones out, parks the kernel when idle, and watches over it.
//
// A submitter that finds nobody ahead of it writes its own message to the inbox (the short way, about a tenth of a
// microsecond); all others leave the run in a lock-free queue that the pump's one thread empties. Either way one
// thread at a time, the holder of `mutex_`, writes the inbox.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "host/error.hpp"
#include "host/heartbeat.hpp"
#include "host/inbox.hpp"
#include "host/line.hpp"
#include "host/reservation.hpp"
#include "host/run_record.hpp"
#include "host/world_memory.hpp"

namespace flywheel {

struct PumpCounters {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t direct = 0;    // submissions that took the short way
  std::uint64_t launches = 0;
  std::uint64_t parks = 0;
  std::uint64_t peak_live = 0; // most runs in flight at once
};

class Pump {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  Pump(Engine& engine, WorldMemory& memory, const Options& options);
  ~Pump();

  /// Takes over the run. Waits while the line is full. Throws UsageError after shutdown, DeviceError if the GPU died.
  void submit(RunPtr run);
  /// False if the line is full.
  bool try_submit(const RunPtr& run);
  /// A run that a CUDA stream will submit. It fails if the device is lost before: then streams call nobody back.
  void expect(const RunPtr& run);
  /// From a CUDA stream's callback: never throws, never calls CUDA; a run that cannot start fails.
  void submit_from_stream(RunPtr run) noexcept;
  void cancel(const RunPtr& run);
  /// True if the run is done; takes it out of its slot if it has just ended.
  bool poll(const RunPtr& run);
  /// Takes what the run has streamed so far out of its slot, so that its tasks do not wait.
  void drain(RunRecord& run);
  /// Runs `action` while no kernel is resident and none is launched; waits for runs in flight first.
  void while_parked(const std::function<void()>& action);
  /// Ends everything within the given time. False if the kernel could not be stopped.
  bool shutdown(std::chrono::milliseconds limit);
  /// After shutdown(): true if its thread is in a launch that does not return. Then nobody waits for the thread, and the
  /// caller keeps all that it uses for ever.
  bool let_go_if_stuck();
  PumpCounters counters();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  void throw_if_closed() const;
  void join_line(RunPtr run);
  void let_in(const Lock&);
  bool let_in_level(const Lock&, Line::Lanes& lanes, bool& asked);
  bool may_leave_line(const RunRecord& run, bool& asked);
  void let_in_first(const Lock&, Line::Lane& lane);
  void turn_away(const Lock&);
  bool has_slot(const RunRecord& run) const;
  bool is_behind_its_like(const RunRecord& run) const;
  std::uint64_t room_for(const RunRecord& run) const;
  bool has_room(const RunRecord& run) const;
  bool can_let_in(const RunRecord& run) const;
  void let_in(const Lock&, const RunPtr& run);
  void open_slot(RunRecord& run);
  void ensure_kernel();
  void launch();
  void launch_if_due(Lock& lock);

  void loop();
  bool turn(Lock& lock);
  bool gets_on(bool arrivals, Clock::time_point now);
  void sleep(Lock& lock);
  void nap(Lock& lock);
  bool something_to_do() const;
  void take_finished(const Lock&);
  void retire(const Lock&, std::uint32_t slot);
  void check_kernel(const Lock&);
  void check_start(const Lock&);
  bool anyone_waits() const;
  void fail_waiting(const Lock&, Status status, const std::string& cause);
  void check_stalls(const Lock&);
  std::string wait_report() const;
  void send_cancel(const RunRecord& run);
  void send_cancels();
  void park_if_idle(const Lock&);
  void park();
  void fail_everything(const Lock&, Status status, const std::string& cause);
  void abandon(RunRecord& run, Status status, const std::string& cause);
  static void finish(RunRecord& run, Status status, const std::string& cause);
  /// The engine throws when the device is lost or refuses a launch. Then no run can succeed any more, and each says why.
  template <class Action>
  void or_fail_everything(Lock& lock, Action&& action);
  void give_up(Lock& lock, Status status, const char* cause);
  bool wait_until_parked(Lock& lock, Clock::time_point limit);
  void cancel_all(const Lock&);
  void abort_workers();

  Engine& engine_;
  WorldMemory& memory_;
  World& world_;
  const Options options_;
  Watchdog watchdog_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<Line> line_;

  // Guarded by mutex_.
  InboxWriter inbox_;
  std::vector<RunPtr> live_;  // by slot
  std::vector<RunPtr> abandoned_;  // their programs were told; until the kernel ends, its workers may be at their graphs
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint64_t> stream_next_;
  std::uint32_t live_count_ = 0;
  std::uint64_t live_tasks_ = 0;
  bool all_workers_live_ = false;  // a phased or compiled run
  std::uint32_t phased_done_ = 0;
  bool resident_ = false;  // launched, and not yet seen to end
  bool parking_ = false;   // told to park
  bool all_present_ = false;
  bool launch_due_ = false;  // drain mode: the pump's thread is to launch
  std::uint32_t holds_ = 0;  // while_parked() calls at work: let nobody in
  bool closed_ = false;
  bool ending_ = false;
  bool gone_ = false;      // no run can succeed any more
  std::string lost_;       // why; not written once `line_->closed` is set
  Status end_status_ = Status::aborted;  // of runs that come too late
  std::string end_cause_ = "the runtime was shut down";
  std::vector<RunPtr> expected_;  // from streams, and not let in yet
  Reservation reservation_;
  std::vector<RunConstants> cancels_due_;  // messages the inbox had no room for
  Clock::time_point last_busy_{};
  std::uint64_t seen_submitted_ = 0;  // by the last turn
  std::uint64_t seen_ended_ = 0;
  bool streams_ = false;  // values have come since the last turn
  Clock::time_point last_progress_{};  // see gets_on()
  Clock::time_point last_check_{};
  Clock::time_point late_from_{};  // what Options::start_timeout counts from
  PumpCounters counters_;

  std::thread thread_;
};

template <class Action>
void Pump::or_fail_everything(Lock& lock, Action&& action) {
  try {
    action();
  } catch (const LaunchRefused& error) {
    give_up(lock, Status::launch_refused, error.what());
  } catch (const std::exception& error) {
    give_up(lock, Status::device_lost, error.what());
  }
}

}  // namespace flywheel
