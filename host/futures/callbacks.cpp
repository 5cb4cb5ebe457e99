#include "callbacks.hpp"

#include <atomic>
#include <exception>
#include <string>

#include "../base/back_off.hpp"
#include "../base/deferred_release.hpp"
#include "../base/log.hpp"
#include "../submit/run_record.hpp"
#include "run.hpp"

namespace flywheel::detail {

bool collect_run(const std::shared_ptr<RunRecord>& run) { return Run(run->graph->core, run).done(); }

/// What the thread uses. A callback may drop the last reference to the core, so nothing of this belongs to the core alone.
struct Callbacks::Shared {
  std::shared_ptr<EndQueue> queue = std::make_shared<EndQueue>(collect_run);
  /// Callbacks that have not returned. Incremented before a callback can be called. Release, when one has returned:
  /// pairs with the acquire in wait_until_called(); what callbacks write is visible after it.
  std::atomic<std::size_t> open{0};

  void loop();
};

namespace {
void call(Ended& ended) {
  try {
    Run run(ended.run->graph->core, ended.run);
    ended.callback->call(run);
  } catch (const std::exception& error) {
    log::error(std::string("a callback of Run::on_done() threw: ") + (error.what() ? error.what() : "without a text") +
               ". Remedy: catch it there.");
  } catch (...) {
    log::error("a callback of Run::on_done() threw something that is no std::exception. Remedy: catch it there.");
  }
  ended.callback.reset();  // before the run: it may use what the run keeps alive
}
}  // namespace

void Callbacks::Shared::loop() {
  const DeferredRelease here;  // the last reference to the core may be dropped on this thread, by a run
  while (auto ended = queue->next(EndQueue::Clock::time_point::max(), EndQueue::WhenEmpty::wait)) {
    call(*ended);
    ended.reset();
    // Release: pairs with the acquire load of `open` by the thread that waits for the callbacks to end.
    open.fetch_sub(1, std::memory_order_release);
  }
}

Callbacks::~Callbacks() {
  if (!shared_) return;
  shared_->queue->close();
  thread_.join();
}

Listener Callbacks::listener(std::shared_ptr<Callback> callback) {
  std::scoped_lock lock(mutex_);
  if (!shared_) {
    auto shared = std::make_shared<Shared>();
    thread_ = std::thread([shared] { shared->loop(); });
    shared_ = std::move(shared);
  }
  Listener listener(shared_->queue, 0, std::move(callback));
  shared_->open.fetch_add(1, std::memory_order_relaxed);  // relaxed: the queue's mutex orders it before the call
  return listener;
}

bool Callbacks::wait_until_called(std::chrono::steady_clock::time_point limit) {
  std::shared_ptr<Shared> shared;
  {
    std::scoped_lock lock(mutex_);
    if (!shared_ || thread_.get_id() == std::this_thread::get_id()) return true;
    shared = shared_;
  }
  // Acquire: pairs with the release in Shared::loop().
  for (BackOff back_off; shared->open.load(std::memory_order_acquire); back_off.pause())
    if (back_off.now_and_then() && std::chrono::steady_clock::now() > limit) return false;
  return true;
}

}  // namespace flywheel::detail
