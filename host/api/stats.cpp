#include "stats.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "../futures/core.hpp"
#include "runtime.hpp"

namespace flywheel {
using namespace detail;

namespace {

/// What the dispatcher has counted.
void set_counts(Stats& all, Dispatcher& dispatcher) {
  const DispatcherCounters runs = dispatcher.counters();
  all.submitted = runs.submitted;
  all.completed = runs.completed;
  all.direct = runs.direct;
  all.peak_live = runs.peak_live;
  all.launches = runs.launches;
  all.parks = runs.parks;
  all.yields = runs.yields;
  const SingleTasks& singles = dispatcher.singles();
  all.singles_submitted = singles.submitted();
  // Read after it: tasks that are submitted in between count as in flight.
  all.singles_completed = all.singles_submitted - std::min<std::uint64_t>(all.singles_submitted, singles.in_flight());
}

void add(Stats& all, const WorkerStats& one) {
  all.tasks += one.tasks;
  all.skipped += one.skipped;
  all.kept += one.kept;
  all.handed += one.handed;
  all.queued += one.queued;
  all.idle_polls += one.polls;
}

bool nothing_in_flight(const Stats& all) {
  return all.completed == all.submitted && all.singles_completed == all.singles_submitted;
}

}  // namespace

Stats Runtime::stats() {
  const DeviceState& dev = core()->memory.dev();
  Stats all{};
  set_counts(all, core_->dispatcher);
  // Workers that have just finished the last run are about to publish their counts: wait for them.
  if (nothing_in_flight(all)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<WorkerStats> each(dev.workers);
  std::vector<QueueWords> queues(kPriorities);
  core_->engine->copy_to_host(each.data(), dev.stats, each.size() * sizeof(WorkerStats));
  core_->engine->copy_to_host(queues.data(), dev.queue_words, queues.size() * sizeof(QueueWords));
  set_counts(all, core_->dispatcher);
  all.device = device();
  all.workers = workers();
  for (const WorkerStats& one : each) add(all, one);
  for (const QueueWords& queue : queues) all.queue_peak = std::max<std::uint64_t>(all.queue_peak, queue.peak.value);
  return all;
}

}  // namespace flywheel
