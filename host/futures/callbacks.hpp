// The thread that calls the callbacks of Run::on_done() and resumes coroutines. A runtime's core owns it.
//
// The thread is not the dispatcher's: a callback may submit, wait and load, all of which can wait for the dispatcher's
// thread, and a long callback delays no run. It is a consumer of an EndQueue, so it polls the completion words of runs
// with callbacks and finds their ends as soon as a waiting thread would. A runtime without callbacks has no such thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "../collect/end_queue.hpp"

namespace flywheel::detail {

/// Thread-safe.
class Callbacks {
 public:
  Callbacks() = default;
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  /// No run with a callback is left: each owns the core.
  ~Callbacks();

  /// A listener that has the callback called. Starts the thread with the first one.
  Listener listener(std::shared_ptr<Callback> callback);
  /// Waits until all callbacks have returned, at most until `limit`. False if they have not. On the thread of the
  /// callbacks it does not wait, and returns true.
  bool wait_until_called(std::chrono::steady_clock::time_point limit);

 private:
  struct Shared;
  std::mutex mutex_;
  std::shared_ptr<Shared> shared_;  // null: there was no callback yet; the thread owns it, too
  std::thread thread_;
};

/// Ends a run in flight whose completion word is written, for an EndQueue.
bool collect_run(const std::shared_ptr<RunRecord>& run);

}  // namespace flywheel::detail
