#include "backlog.hpp"

#include <concurrentqueue.h>

#include <algorithm>

namespace flywheel::detail {

namespace {
const LoadedGraph* queue_of(const RunRecord& run) { return run.graph->kind == GraphKind::dynamic ? run.graph.get() : nullptr; }
bool came_later(const Backlog::RunQueue* a, const Backlog::RunQueue* b) { return a->front()->place > b->front()->place; }
}  // namespace

namespace {
/// Takes the values whose runs or single tasks have ended well as parameters of the run.
void take_known_values(RunRecord& run) {
  std::erase_if(run.before->values, [&](const TakenValue& value) {
    if (!(value.run ? value.run->ended_well() : value.single->ended_well())) return false;
    const unsigned char* from = value.run ? value.run->results.data() : value.single->result.data();
    std::copy_n(from + value.from, value.bytes, run.params.begin() + value.to);
    return true;
  });
}
}  // namespace

Obstacle obstacle_of(RunRecord& run) {
  const bool of_all = run.graph->kind != GraphKind::dynamic;
  RunsBefore& before = *run.before;
  Obstacle obstacle;
  std::erase_if(before.runs, [&](const std::shared_ptr<RunRecord>& one) {
    // Acquire: pairs with the release stores of `done`, which publish the code. The phase becomes `live` under the mutex.
    const RunPhase phase = one->phase.load(std::memory_order_acquire);
    const bool done = phase == RunPhase::done;
    run.predecessor_failed |= done && one->code;
    if (!done && (of_all || (phase == RunPhase::waiting && !obstacle.run))) obstacle = {true, of_all, one.get()};
    return done && !one->code;
  });
  std::erase_if(before.singles, [&](const std::shared_ptr<SingleTask>& one) {
    const bool done = one->done.load(std::memory_order_acquire);  // acquire: pairs with finish() and fail()
    run.predecessor_failed |= done && one->code;
    if (!done && of_all && !obstacle.there) obstacle = {true, true, nullptr};
    return done && !one->code;
  });
  take_known_values(run);
  if (run.predecessor_failed) return {};
  if (obstacle.there) return obstacle;
  if (before.size() > kMostPredecessors) return {true, true, before.runs.empty() ? nullptr : before.runs.front().get()};
  if (before.values.size() > kMostValues) return {true, true, before.values.front().run.get()};
  return {};
}

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
  if (auto node = held_.extract(nullptr)) {  // nobody notes when a single task ends: look again
    held_count_ -= static_cast<std::uint32_t>(node.mapped().size());
    for (Held& one : node.mapped()) sort(std::move(one.run));
  }
  const std::uint64_t before = arrived_;
  RunPtr run;
  while (arrivals_->queue.try_dequeue(run)) sort(std::move(run));
  return arrived_ != before;
}

void Backlog::sort(RunPtr run) {
  run->place = ++arrived_;
  run->is_held = false;
  const Obstacle obstacle = run->before ? obstacle_of(*run) : Obstacle{};
  if (obstacle.there) hold_back(std::move(run), obstacle);
  else levels_[run->priority][queue_of(*run)].push_back(std::move(run));
}

void Backlog::hold_back(RunPtr run, const Obstacle& obstacle) {
  run->is_held = true;
  run->held_by = obstacle.run;
  held_[obstacle.run].push_back({std::move(run), obstacle.until_end});
  ++held_count_;
}

void Backlog::let_go(const RunRecord& run, bool ended) {
  const auto at = held_.find(&run);
  if (at == held_.end()) return;
  std::vector<Held>& all = at->second;
  const auto stay = std::stable_partition(all.begin(), all.end(), [&](const Held& one) { return ended || !one.until_end; });
  for (auto one = all.begin(); one != stay; ++one, --held_count_) {
    one->run->is_held = false;
    arrivals_->queue.enqueue(std::move(one->run));  // length_ counts it still
  }
  all.erase(all.begin(), stay);
  if (all.empty()) held_.erase(at);
}

bool Backlog::remove_held(const RunPtr& run) {
  const auto at = held_.find(run->held_by);
  if (at == held_.end()) return false;
  const std::size_t found = std::erase_if(at->second, [&](const Held& one) { return one.run == run; });
  if (at->second.empty()) held_.erase(at);
  run->is_held = false;
  held_count_ -= static_cast<std::uint32_t>(found);
  length_.fetch_sub(static_cast<std::uint32_t>(found), std::memory_order_relaxed);  // relaxed: see size()
  return found;
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
  if (run->is_held) return remove_held(run);
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
  for (auto& [predecessor, runs] : held_)
    for (Held& one : runs) all.push_back(std::move(one.run));
  held_.clear();
  held_count_ = 0;
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
