#include "backlog.hpp"

#include <concurrentqueue.h>

#include <algorithm>

namespace flywheel::detail {

namespace {
const LoadedGraph* lane_of(const RunRecord& run) { return run.graph->kind == GraphKind::dynamic ? run.graph.get() : nullptr; }
bool came_later(const Backlog::Lane* a, const Backlog::Lane* b) { return a->front()->place > b->front()->place; }
}  // namespace

struct Backlog::Fresh {
  moodycamel::ConcurrentQueue<std::shared_ptr<RunRecord>> queue;
};

Backlog::Backlog() : fresh_(std::make_unique<Fresh>()) {}
Backlog::~Backlog() = default;

void Backlog::enqueue(RunPtr run) {
  // Relaxed: the queue's own release follows, so a thread that dequeues the run sees it counted, and the count never
  // falls below 0.
  length_.fetch_add(1, std::memory_order_relaxed);
  fresh_->queue.enqueue(std::move(run));
}

bool Backlog::fresh_empty() const { return fresh_->queue.size_approx() == 0; }

bool Backlog::drain() {
  const std::uint64_t before = arrived_;
  RunPtr run;
  while (fresh_->queue.try_dequeue(run)) {
    run->place = ++arrived_;
    levels_[run->priority][lane_of(*run)].push_back(std::move(run));
  }
  return arrived_ != before;
}

Backlog::RunPtr Backlog::take_first(Lane& lane) {
  RunPtr run = std::move(lane.front());
  lane.pop_front();
  length_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see size()
  return run;
}

void Backlog::forget_empty_lanes() {
  // This is not done in take_first(): admit_level() still refers to the lane.
  for (Lanes& lanes : levels_) std::erase_if(lanes, [](const auto& entry) { return entry.second.empty(); });
}

bool Backlog::remove(const RunPtr& run) {
  drain();
  Lanes& lanes = levels_[run->priority];
  const auto lane = lanes.find(lane_of(*run));
  if (lane == lanes.end()) return false;
  Lane& runs = lane->second;
  const auto at = std::find(runs.begin(), runs.end(), run);
  if (at == runs.end()) return false;
  runs.erase(at);
  if (runs.empty()) lanes.erase(lane);
  length_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see size()
  return true;
}

std::vector<Backlog::RunPtr> Backlog::take_all() {
  drain();
  std::vector<RunPtr> all;
  for (Lanes& lanes : levels_) {
    Heads heads(lanes);
    while (Lane* lane = heads.take()) {
      all.push_back(lane->front());
      lane->pop_front();
      heads.give_back(*lane);
    }
    lanes.clear();
  }
  length_.fetch_sub(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);  // relaxed: see size()
  return all;
}

Backlog::Heads::Heads(Lanes& lanes) {
  for (auto& [graph, lane] : lanes)
    if (!lane.empty()) heap_.push_back(&lane);
  std::make_heap(heap_.begin(), heap_.end(), came_later);
}

Backlog::Lane* Backlog::Heads::take() {
  if (heap_.empty()) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end(), came_later);
  Lane* lane = heap_.back();
  heap_.pop_back();
  return lane;
}

void Backlog::Heads::give_back(Lane& lane) {
  if (lane.empty()) return;
  heap_.push_back(&lane);
  std::push_heap(heap_.begin(), heap_.end(), came_later);
}

}  // namespace flywheel::detail
