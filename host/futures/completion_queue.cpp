#include "completion_queue.hpp"

#include "../base/back_off.hpp"
#include "core.hpp"

namespace flywheel {
using namespace detail;

namespace {
std::optional<Finished> finished(std::optional<Ended> ended) {
  if (!ended) return std::nullopt;
  const auto& core = ended->run->graph->core;
  return Finished{Run(core, std::move(ended->run)), ended->tag};
}

/// In a child of fork(): a thread that is not there may be in the midst of a change of the queue, so it stays as it is.
void keep_for_ever(std::shared_ptr<EndQueue> queue) {
  static auto& kept = *new std::vector<std::shared_ptr<EndQueue>>;
  kept.push_back(std::move(queue));
}
}  // namespace

CompletionQueue::CompletionQueue() : queue_(std::make_shared<EndQueue>(collect_run)), process_(this_process()) {}

CompletionQueue::~CompletionQueue() {
  if (process_ == this_process()) queue_->close();
  else keep_for_ever(std::move(queue_));
}

EndQueue& CompletionQueue::ours() const {
  if (process_ != this_process())
    throw UsageError(
        "a child of fork() cannot use a CompletionQueue of its parent, whose runs end there: start a runtime in the child, "
        "and create a queue there");
  return *queue_;
}

std::optional<Finished> CompletionQueue::next_finished() {
  return finished(ours().next(EndQueue::Clock::time_point::max(), EndQueue::WhenEmpty::give_up));
}

std::optional<Finished> CompletionQueue::try_next_finished() { return finished(ours().try_next()); }

std::optional<Finished> CompletionQueue::next_finished_for(std::chrono::nanoseconds limit) {
  return finished(ours().next(time_in(limit), EndQueue::WhenEmpty::wait));
}

std::size_t CompletionQueue::size() const { return ours().size(); }

}  // namespace flywheel
