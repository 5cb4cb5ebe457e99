#include "end_queue.hpp"

#include <iterator>
#include <utility>

#include "../../runtime/base/platform.hpp"
#include "../base/back_off.hpp"

namespace flywheel::detail {

// ---- listeners ----

void EndQueue::expect() {
  std::scoped_lock lock(mutex_);
  ++expected_;
  wake_.notify_all();
}

void EndQueue::withdraw() {
  std::scoped_lock lock(mutex_);
  --expected_;
}

void EndQueue::watch(RunPtr run, const std::uint64_t& word, std::uint32_t generation) {
  std::scoped_lock lock(mutex_);
  if (!closed_) watched_.push_back({std::move(run), &word, generation});
}

void EndQueue::push(Ended ended) {
  std::scoped_lock lock(mutex_);
  if (!closed_) ended_.push_back(std::move(ended));
}

Listener::Listener(std::shared_ptr<EndQueue> queue, std::uint64_t tag, std::shared_ptr<Callback> callback)
    : queue_(std::move(queue)),
      tag_(tag),
      callback_(std::move(callback)) {
  queue_->expect();
}

Listener::~Listener() {
  if (queue_) queue_->withdraw();
}

void Listener::end(const std::shared_ptr<RunRecord>& run) {
  const std::shared_ptr<EndQueue> queue = std::move(queue_);
  queue->push({run, tag_, std::move(callback_)});
}

// ---- consumers ----

std::optional<Ended> EndQueue::next(Clock::time_point limit, WhenEmpty when_empty) {
  for (BackOff back_off;; back_off.pause()) {
    if (auto ended = try_next()) return ended;
    if (!size()) {
      if (when_empty == WhenEmpty::give_up || !wait_for_listener(limit)) return std::nullopt;
      back_off = {};
    }
    if (back_off.now_and_then() && Clock::now() > limit) return std::nullopt;
  }
}

std::optional<Ended> EndQueue::try_next() {
  std::optional<Ended> ended;
  if (take(ended)) return ended;
  poll();
  take(ended);
  return ended;
}

std::size_t EndQueue::size() const {
  std::scoped_lock lock(mutex_);
  return closed_ ? 0 : expected_;
}

bool EndQueue::take(std::optional<Ended>& ended) {
  {
    std::scoped_lock lock(mutex_);
    if (ended_.empty()) return false;
    ended = std::move(ended_.front());
    ended_.pop_front();
    if (--expected_) return true;
  }
  poll();  // nothing is expected: drops what other threads have collected, so that no entry keeps its run for long
  return true;
}

/// Collects the watched runs that have ended; each collected run comes back through push(). The cost of a call is one
/// load for each watched run in flight, from a cache line that only the device writes. A consumer that finds another
/// one polling returns at once.
void EndQueue::poll() {
  std::vector<InFlight> stale;  // goes after the lock: it may hold the last references to runs
  std::unique_lock polling(polling_, std::try_to_lock);
  if (!polling.owns_lock()) return;
  take_up_watched(stale);
  for (std::size_t i = 0; i < in_flight_.size();) {
    InFlight& one = in_flight_[i];
    if (!one.is_over() || !collect_(one.run)) {
      ++i;
      continue;
    }
    one = std::move(in_flight_.back());
    in_flight_.pop_back();
  }
}

/// Takes over the runs that went in flight since the last poll. While no run is expected, other threads have collected
/// all that are watched: then they are `stale`. The caller holds polling_.
void EndQueue::take_up_watched(std::vector<InFlight>& stale) {
  std::scoped_lock lock(mutex_);
  if (!expected_ || closed_) {
    in_flight_.insert(in_flight_.end(), std::make_move_iterator(watched_.begin()), std::make_move_iterator(watched_.end()));
    watched_.clear();
    stale.swap(in_flight_);
  }
  for (InFlight& one : watched_) in_flight_.push_back(std::move(one));
  watched_.clear();
}

bool EndQueue::InFlight::is_over() const {
  // Acquire: pairs with the release store in runtime/ready/completion.hpp, end_run(), as is_complete() does. The slot
  // may have had more runs since, when another thread has collected this one: then the generation is a later one.
  const std::uint64_t now = CpuPlatform::system(*const_cast<std::uint64_t*>(word)).load(Order::acquire);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(now >> 32) - generation) >= 0;
}

/// Sleeps until a run is expected. False if none is by `limit`, and after close().
bool EndQueue::wait_for_listener(Clock::time_point limit) {
  std::unique_lock lock(mutex_);
  const auto called = [&] { return expected_ || closed_; };
  if (limit == Clock::time_point::max()) wake_.wait(lock, called);
  else wake_.wait_until(lock, limit, called);
  return expected_ && !closed_;
}

void EndQueue::close() {
  std::deque<Ended> ended;
  std::vector<InFlight> in_flight, watched;  // like `ended`, these go after the locks
  std::scoped_lock lock(polling_, mutex_);
  closed_ = true;
  ended.swap(ended_);
  in_flight.swap(in_flight_);
  watched.swap(watched_);
  wake_.notify_all();
}

}  // namespace flywheel::detail
