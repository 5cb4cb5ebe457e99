#include "host/line.hpp"

#include <concurrentqueue.h>

namespace flywheel {

struct Line::Fresh {
  moodycamel::ConcurrentQueue<std::shared_ptr<RunRecord>> queue;
};

Line::Line() : fresh_(std::make_unique<Fresh>()) {}
Line::~Line() = default;

void Line::enqueue(std::shared_ptr<RunRecord> run) {
  length.fetch_add(1, std::memory_order_relaxed);
  fresh_->queue.enqueue(std::move(run));
}

bool Line::fresh_empty() const { return fresh_->queue.size_approx() == 0; }

void Line::drain() {
  std::shared_ptr<RunRecord> run;
  while (fresh_->queue.try_dequeue(run)) sorted.push_back(std::move(run));
}

}  // namespace flywheel
