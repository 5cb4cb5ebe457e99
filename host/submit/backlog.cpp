#include "backlog.hpp"

#include <concurrentqueue.h>

#include <algorithm>

namespace flywheel::detail {

namespace {
const LoadedGraph* queue_of(const RunRecord& run) { return run.graph->kind == GraphKind::dynamic ? run.graph.get() : nullptr; }
bool came_later(const Backlog::RunQueue* a, const Backlog::RunQueue* b) { return a->front()->place > b->front()->place; }
}  // namespace

struct Backlog::Arrivals {
  moodycamel::ConcurrentQueue<std::shared_ptr<RunRecord>> queue;
};

Backlog::Backlog() : arrivals_(std::make_unique<Arrivals>()) {}
Backlog::~Backlog() = default;

void Backlog::enqueue(RunPtr run) {
  // Relaxed: the queue's own release follows, so a thread that dequeues the run sees it counted, and the count never
  // falls below 0.
  length_.fetch_add(1, std::memory_order_relaxed);
  arrivals_->queue.enqueue(std::move(run));
}

bool Backlog::no_arrivals() const { return arrivals_->queue.size_approx() == 0; }

bool Backlog::drain() {
  const std::uint64_t before = arrived_;
  RunPtr run;
  while (arrivals_->queue.try_dequeue(run)) {
    run->place = ++arrived_;
    levels_[run->priority][queue_of(*run)].push_back(std::move(run));
  }
  return arrived_ != before;
}

Backlog::RunPtr Backlog::take_first(RunQueue& queue) {
  RunPtr run = std::move(queue.front());
  queue.pop_front();
  length_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see size()
  return run;
}

void Backlog::forget_empty_queues() {
  // This is not done in take_first(): admit_level() still refers to the queue.
  for (RunQueues& queues : levels_) std::erase_if(queues, [](const auto& entry) { return entry.second.empty(); });
}

bool Backlog::remove(const RunPtr& run) {
  drain();
  RunQueues& queues = levels_[run->priority];
  const auto queue = queues.find(queue_of(*run));
  if (queue == queues.end()) return false;
  RunQueue& runs = queue->second;
  const auto at = std::find(runs.begin(), runs.end(), run);
  if (at == runs.end()) return false;
  runs.erase(at);
  if (runs.empty()) queues.erase(queue);
  length_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see size()
  return true;
}

std::vector<Backlog::RunPtr> Backlog::take_all() {
  drain();
  std::vector<RunPtr> all;
  for (RunQueues& queues : levels_) {
    Heads heads(queues);
    while (RunQueue* queue = heads.take()) {
      all.push_back(queue->front());
      queue->pop_front();
      heads.give_back(*queue);
    }
    queues.clear();
  }
  length_.fetch_sub(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);  // relaxed: see size()
  return all;
}

Backlog::Heads::Heads(RunQueues& queues) {
  for (auto& [graph, queue] : queues)
    if (!queue.empty()) heap_.push_back(&queue);
  std::make_heap(heap_.begin(), heap_.end(), came_later);
}

Backlog::RunQueue* Backlog::Heads::take() {
  if (heap_.empty()) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end(), came_later);
  RunQueue* queue = heap_.back();
  heap_.pop_back();
  return queue;
}

void Backlog::Heads::give_back(RunQueue& queue) {
  if (queue.empty()) return;
  heap_.push_back(&queue);
  std::push_heap(heap_.begin(), heap_.end(), came_later);
}

}  // namespace flywheel::detail
