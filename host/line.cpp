#include "host/line.hpp"

#include <concurrentqueue.h>

#include <algorithm>

namespace flywheel {

namespace {
const LoadedGraph* lane_of(const RunRecord& run) {
  return run.graph->kind == GraphKind::dynamic ? run.graph.get() : nullptr;
}
bool came_later(const Line::Lane* a, const Line::Lane* b) { return a->front()->place > b->front()->place; }
}  // namespace

struct Line::Fresh {
  moodycamel::ConcurrentQueue<std::shared_ptr<RunRecord>> queue;
};

Line::Line() : fresh_(std::make_unique<Fresh>()) {}
Line::~Line() = default;

void Line::enqueue(RunPtr run) {
  length.fetch_add(1, std::memory_order_relaxed);
  fresh_->queue.enqueue(std::move(run));
}

bool Line::fresh_empty() const { return fresh_->queue.size_approx() == 0; }

bool Line::drain() {
  const std::uint64_t before = arrived_;
  RunPtr run;
  while (fresh_->queue.try_dequeue(run)) {
    run->place = ++arrived_;
    levels[run->priority][lane_of(*run)].push_back(std::move(run));
  }
  return arrived_ != before;
}

void Line::forget_empty_lanes() {
  for (Lanes& lanes : levels) std::erase_if(lanes, [](const auto& entry) { return entry.second.empty(); });
}

bool Line::remove(const RunPtr& run) {
  drain();
  Lanes& lanes = levels[run->priority];
  const auto lane = lanes.find(lane_of(*run));
  if (lane == lanes.end()) return false;
  Lane& runs = lane->second;
  const auto at = std::find(runs.begin(), runs.end(), run);
  if (at == runs.end()) return false;
  runs.erase(at);
  if (runs.empty()) lanes.erase(lane);
  length.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

std::vector<Line::RunPtr> Line::take_all() {
  drain();
  std::vector<RunPtr> all;
  for (Lanes& lanes : levels) {
    Heads heads(lanes);
    while (Lane* lane = heads.take()) {
      all.push_back(lane->front());
      lane->pop_front();
      heads.give_back(*lane);
    }
    lanes.clear();
  }
  length.fetch_sub(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);
  return all;
}

Line::Heads::Heads(Lanes& lanes) {
  for (auto& [graph, lane] : lanes)
    if (!lane.empty()) heap_.push_back(&lane);
  std::make_heap(heap_.begin(), heap_.end(), came_later);
}

Line::Lane* Line::Heads::take() {
  if (heap_.empty()) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end(), came_later);
  Lane* lane = heap_.back();
  heap_.pop_back();
  return lane;
}

void Line::Heads::give_back(Lane& lane) {
  if (lane.empty()) return;
  heap_.push_back(&lane);
  std::push_heap(heap_.begin(), heap_.end(), came_later);
}

}  // namespace flywheel
