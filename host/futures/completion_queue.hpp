// CompletionQueue: the runs of many submissions, in the order in which they end.
//
//   flywheel::CompletionQueue queue;
//   for (std::uint64_t i = 0; i < requests.size(); ++i) rt.submit(executable, set(input, requests[i]), notify(queue, i));
//   while (auto finished = queue.next_finished()) answer(finished->tag, finished->run.get(output));
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "run.hpp"

namespace flywheel {

namespace detail {
class EndQueue;
}  // namespace detail

/// A run that has ended, well or not, and the tag that notify() gave it.
struct Finished {
  Run run;
  std::uint64_t tag;
};

/// Any number of queues, each for runs of any runtimes; all functions are thread-safe, also for many consumers of one
/// queue. A run option, notify(queue, tag), puts a run into it. Each such run comes out once, however it has ended. A
/// queue that is destroyed forgets its runs, which go on. The functions throw UsageError in a child of fork().
///
/// A look at the queue costs one load from pinned memory for each of its runs in flight (64 bytes each, in the cache of
/// the consumer until the device writes the word); runs in the backlog and finished ones cost nothing.
class CompletionQueue {
 public:
  CompletionQueue();
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Waits for the next run that ends, and takes it. Empty once the queue has no runs: then all of them were taken.
  std::optional<Finished> next_finished();
  /// Takes a run that has ended. Empty if none has. Does not wait.
  std::optional<Finished> try_next_finished();
  /// Like next_finished(), but waits at most for `limit`, and also while the queue has no runs: another thread may submit
  /// one meanwhile. This is the call for consumers with threads of their own.
  std::optional<Finished> next_finished_for(std::chrono::nanoseconds limit);
  /// The number of runs that were submitted and not taken yet.
  std::size_t size() const;

 private:
  friend struct Notify;
  detail::EndQueue& ours() const;

  std::shared_ptr<detail::EndQueue> queue_;
  const int process_;
};

/// A run option: the run comes out of the queue when it has ended. Made by notify(). A run may have several.
struct Notify {
  Notify(const CompletionQueue& to, std::uint64_t tag_of_run) : queue(to.queue_), tag(tag_of_run) {}
  std::shared_ptr<detail::EndQueue> queue;
  std::uint64_t tag;
};
/// Makes the run option: rt.submit(executable, notify(queue, 7)).
template <class Queue>
Notify notify(Queue&& queue, std::uint64_t tag = 0) {
  static_assert(std::is_same_v<std::remove_cvref_t<Queue>, CompletionQueue>,
                "notify() takes the flywheel::CompletionQueue that the run goes to, and a tag");
  static_assert(std::is_lvalue_reference_v<Queue>,
                "notify(): this queue is gone before the run ends: give it a name, CompletionQueue queue;");
  return {queue, tag};
}

}  // namespace flywheel
