// The runtime as a service: one resident kernel, or CPU workers.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <array>
#include <bit>

#include "apps/serve_bench/window.hpp"
#include "apps/serve_bench/work.hpp"

namespace serve {

using flywheel::Executable;
using flywheel::Runtime;

namespace {

constexpr std::uint32_t kSumStride = 16;  // words between the sums of two workers: a cache line each

/// A worker runs one task at a time, so its sum needs no atomics.
template <class Block>
FLYWHEEL_TASK std::uint64_t do_work(Block& block, std::uint64_t word, std::int64_t ticks, std::uint64_t* sums) {
  const std::uint64_t value = stir(word);
  if (block.leader()) {
    spin_for(ticks);
    sums[kSumStride * block.worker()] += value;
  }
  block.sync();
  return value;
}

struct Work {
  std::uint64_t word;
  std::int64_t ticks;
  std::uint64_t* sums;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    return do_work(block, word, ticks, sums);
  }
};

/// Task `index` of a loaded graph.
struct GraphWork {
  flywheel::Param<std::uint64_t> seed;
  std::uint32_t index;
  std::int64_t ticks;
  std::uint64_t* sums;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    return do_work(block, word_of(block.param(seed), index), ticks, sums);
  }
};

/// What the sessions of one service share.
struct Shared {
  Runtime rt;
  flywheel::Buffer<std::uint64_t> sums;
  std::int64_t ticks;  // of a task

  Work work(std::uint64_t word) const { return {word, ticks, sums.data()}; }
};

class TaskSession final : public Session {
 public:
  TaskSession(Shared& shared, Window window) : shared_(shared), in_flight_(window) {}
  bool try_begin(const Request& request) override {
    if (!in_flight_.has_room(request.priority)) return false;
    in_flight_.add(request, shared_.rt.submit(shared_.work(word_of(request.seed, 0)), request.priority));
    return true;
  }
  void collect(std::vector<Answer>& answers) override {
    in_flight_.take_done(
        answers, [](auto& future) { return future.done(); }, [](auto& future) { return future.get(); });
  }

 private:
  Shared& shared_;
  InFlight<flywheel::Future<std::uint64_t>> in_flight_;
};

class BatchSession final : public Session {
 public:
  BatchSession(Shared& shared, Window window) : shared_(shared), tasks_(kBatchTasks), in_flight_(window) {}
  bool try_begin(const Request& request) override {
    if (!in_flight_.has_room(request.priority)) return false;
    for (std::uint32_t i = 0; i < kBatchTasks; ++i) tasks_[i] = shared_.work(word_of(request.seed, i));
    in_flight_.add(request, shared_.rt.submit(tasks_, request.priority));
    return true;
  }
  void collect(std::vector<Answer>& answers) override {
    in_flight_.take_done(
        answers, [](auto& batch) { return batch.done(); }, sum_of_batch);
  }

 private:
  static std::uint64_t sum_of_batch(flywheel::Batch<std::uint64_t>& batch) {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < kBatchTasks; ++i) sum += batch.get(i);
    return sum;
  }

  Shared& shared_;
  std::vector<Work> tasks_;
  InFlight<flywheel::Batch<std::uint64_t>> in_flight_;
};

/// The small graph, loaded; the runs of one executable are at most Options::overlap at once, so each session and priority has
/// its own.
///     ,-> 1 -.
///   0         >-> 3
///     `-> 2 -'
struct Diamond {
  explicit Diamond(Shared& shared) {
    flywheel::Graph g;
    seed = g.param<std::uint64_t>();
    const auto work = [&](std::uint32_t index) { return GraphWork{seed, index, shared.ticks, shared.sums.data()}; };
    const auto first = g.add(work(0));
    const auto left = g.add(work(1), after(first)), right = g.add(work(2), after(first));
    last = g.add(work(3), after(left, right));
    executable = shared.rt.load(g);
  }
  flywheel::Param<std::uint64_t> seed{};
  flywheel::TaskRef<std::uint64_t> last{};
  Executable executable;
};

/// Its runs come out of a completion queue, each with its place in `requests_` as the tag.
class GraphSession final : public Session {
 public:
  GraphSession(Shared& shared, Window window)
      : shared_(shared),
        window_(window),
        high_(shared),
        normal_(shared),
        requests_(window.both()) {
    for (std::uint32_t place = 0; place < window.both(); ++place) free_.push_back(place);
  }
  bool try_begin(const Request& request) override {
    std::uint32_t& flying = counts_[request.priority == Priority::high];
    if (flying == window_.of(request.priority)) return false;
    const Diamond& graph = graph_of(request);
    const std::uint32_t place = free_.back();
    if (!shared_.rt.try_submit(graph.executable, set(graph.seed, request.seed), request.priority, notify(queue_, place)))
      return false;
    free_.pop_back();
    requests_[place] = request;
    ++flying;
    return true;
  }
  void collect(std::vector<Answer>& answers) override {
    while (auto finished = queue_.try_next_finished()) {
      const Request& request = requests_[finished->tag];
      answers.push_back({request, finished->run.get(graph_of(request).last)});
      free_.push_back(static_cast<std::uint32_t>(finished->tag));
      --counts_[request.priority == Priority::high];
    }
  }

 private:
  const Diamond& graph_of(const Request& request) const { return request.priority == Priority::high ? high_ : normal_; }

  Shared& shared_;
  const Window window_;
  const Diamond high_, normal_;
  flywheel::CompletionQueue queue_;
  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_;
  std::uint32_t counts_[2] = {};
};

/// A thousand single tasks and 64 blocks of batches may be in flight in the runtime. A session that goes beyond would wait in
/// submit(), and with it its requests of high priority. So the window ends before.
std::uint32_t window_of(const ServiceOptions& options) {
  const std::uint32_t most = options.workload.kind == Kind::batch ? 48 : 768;
  return std::min(options.window, most);
}

flywheel::Options options_for(const ServiceOptions& options) {
  flywheel::Options o;
  o.target = options.on_gpu ? flywheel::Target::gpu : flywheel::Target::cpu;
  o.mode = flywheel::Mode::resident;
  o.workers = options.workers;
  o.heap_bytes = std::size_t{16} << 20;
  o.max_runs = std::bit_ceil(2 * options.window);
  o.max_waiting = std::bit_ceil(2 * options.window);
  o.overlap = share_of(options.window, options.clients);
  return o;
}

class FlywheelService final : public Service {
 public:
  explicit FlywheelService(const ServiceOptions& options)
      : shared_{
            flywheel::start<Work, GraphWork>(options_for(options)), {}, work_ticks(options.workload.task_us, options.on_gpu)} {
    shared_.sums = shared_.rt.allocate<std::uint64_t>(std::size_t{kSumStride} * shared_.rt.workers());
    const Window window(window_of(options), options.clients);
    for (std::uint32_t i = 0; i < options.clients; ++i) sessions_.push_back(make_session(options.workload.kind, window));
  }
  const char* name() const override { return "flywheel"; }
  Session& session(std::uint32_t client) override { return *sessions_.at(client); }
  std::uint32_t workers() const override { return shared_.rt.workers(); }
  std::uint64_t sum() override {
    std::uint64_t sum = 0;
    for (const std::uint64_t of_worker : shared_.sums.read()) sum += of_worker;
    return sum;
  }

 private:
  std::unique_ptr<Session> make_session(Kind kind, Window window) {
    if (kind == Kind::task) return std::make_unique<TaskSession>(shared_, window);
    if (kind == Kind::batch) return std::make_unique<BatchSession>(shared_, window);
    return std::make_unique<GraphSession>(shared_, window);
  }

  Shared shared_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace

std::unique_ptr<Service> start_flywheel(const ServiceOptions& options) { return std::make_unique<FlywheelService>(options); }

}  // namespace serve
