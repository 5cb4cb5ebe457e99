#include "host/line.hpp"

#include <concurrentqueue.h>

#include <algorithm>

namespace flywheel {

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

void Line::drain() {
  RunPtr run;
  while (fresh_->queue.try_dequeue(run)) sorted.push_back(std::move(run));
}

void Line::hold_back(const RunPtr& run) {
  if (run->graph->kind != GraphKind::dynamic) of_all.push_back(run);
  else held_back[run->graph.get()].push_back(run);
}

bool Line::is_held_back(const RunRecord& run) const {
  return run.graph->kind != GraphKind::dynamic ? !of_all.empty() : held_back.count(run.graph.get()) != 0;
}

bool Line::remove(const RunPtr& run) {
  drain();
  const auto leave = [&](std::deque<RunPtr>& runs) {
    const auto at = std::find(runs.begin(), runs.end(), run);
    if (at == runs.end()) return false;
    runs.erase(at);
    length.fetch_sub(1, std::memory_order_relaxed);
    return true;
  };
  if (leave(sorted) || leave(of_all)) return true;
  const auto of_graph = held_back.find(run->graph.get());
  if (of_graph == held_back.end() || !leave(of_graph->second)) return false;
  if (of_graph->second.empty()) held_back.erase(of_graph);
  return true;
}

std::vector<Line::RunPtr> Line::take_all() {
  drain();
  std::vector<RunPtr> all(sorted.begin(), sorted.end());
  all.insert(all.end(), of_all.begin(), of_all.end());
  for (const auto& [graph, runs] : held_back) all.insert(all.end(), runs.begin(), runs.end());
  sorted.clear();
  of_all.clear();
  held_back.clear();
  length.fetch_sub(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);
  return all;
}

}  // namespace flywheel
