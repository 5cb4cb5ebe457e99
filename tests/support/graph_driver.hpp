// Drives a runtime with random graphs from several threads and checks every run.
#pragma once

#include <flywheel/flywheel.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "support/graph_check.hpp"
#include "support/random_graphs.hpp"

namespace flywheel::testing {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Campaign {
  std::uint64_t first_seed;
  std::uint32_t graphs;
  std::uint32_t most_tasks;
  std::uint32_t threads;
  bool compiled = false;  // load(graph, compiled)
};

/// What a campaign did, and the first mismatch.
struct Tally {
  std::atomic<std::uint64_t> graphs{0}, runs{0}, executions{0}, spawned{0}, failed{0}, cancelled{0}, streamed{0};
  std::atomic<bool> bad{false};
  std::mutex mutex;
  std::string problem;

  void report(const std::string& what) {
    std::scoped_lock lock(mutex);
    if (problem.empty()) problem = what;
    bad.store(true, std::memory_order_relaxed);
  }
};

/// One submitting thread's own buffers, used again for every graph.
class Lane {
 public:
  Lane(Runtime& runtime, Tally& tally, const Campaign& plan)
      : runtime_(runtime),
        tally_(tally),
        most_(plan.most_tasks + 256),
        compiled_(plan.compiled),
        before_(runtime.allocate<std::uint32_t>(GraphMaker::kMostBefore)),
        banks_(runtime.allocate<std::uint64_t>(kMostRuns * bank_words(most_))) {}

  void operator()(const Case& one) {
    runs_.assign(one.runs.size(), Run());
    upload(one);
    const Executable executable = load(one.graph);
    submit_all(executable, one);
    std::vector<Evidence> seen(one.runs.size());
    for (std::size_t r = 0; r < runs_.size(); ++r)
      if (one.runs[r].cancels) cancel(one.runs[r], runs_[r], seen[r]);
    for (std::size_t r = 0; r < runs_.size(); ++r) follow(one.graph, runs_[r], seen[r]);
    const std::vector<std::uint64_t> words = read(one);
    for (std::size_t r = 0; r < runs_.size(); ++r) judge(one, r, seen[r], words.data() + r * bank_words(one.graph.size()));
    tally_.graphs.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  // A bank: value[n], extra[n], then count[n], sprouts[n], early, all in 64-bit words.
  static std::size_t bank_words(std::size_t n) { return 3 * n + 1; }
  static RunMemory memory_at(std::uint64_t* bank, std::size_t n, std::uint64_t salt) {
    auto* small = reinterpret_cast<std::uint32_t*>(bank + 2 * n);
    return {bank, bank + n, small, small + n, small + 2 * n, salt};
  }

  void upload(const Case& one) {
    if (!one.graph.before.empty()) before_.write(one.graph.before);
    banks_.write(std::vector<std::uint64_t>(one.runs.size() * bank_words(one.graph.size()), 0));
  }
  std::vector<std::uint64_t> read(const Case& one) const {
    std::vector<std::uint64_t> words(one.runs.size() * bank_words(one.graph.size()));
    banks_.read(words.data(), words.size());
    return words;
  }

  Executable load(const GraphSpec& spec) {
    Graph graph;
    memory_ = graph.param(RunMemory{});
    bias_ = graph.param<std::uint32_t>(kDefaultBias);
    returning_.clear();
    std::vector<TaskRef<>> refs(spec.size());
    for (std::uint32_t i = 0; i < spec.size(); ++i) {
      const std::uint32_t id = spec.order[i];
      if (spec.phased && i && spec.nodes[id].phase != spec.nodes[spec.order[i - 1]].phase) graph.phase();
      refs[id] = add(graph, spec, id);
    }
    if (spec.phased) graph.phase();
    else add_edges(graph, spec, refs);
    if (!compiled_) return runtime_.load(graph);
    place_some(graph, spec, refs);
    return runtime_.load(graph, compiled);
  }
  /// One graph in two has a quarter of its tasks where no cost model would put them.
  void place_some(Graph& graph, const GraphSpec& spec, const std::vector<TaskRef<>>& refs) const {
    if (spec.seed % 2) return;
    for (std::uint32_t id = 0; id < spec.size(); ++id) {
      const std::uint64_t dice = mix(spec.seed, id);
      if (dice % 4 == 0) graph.place(refs[id], static_cast<std::uint32_t>(dice / 4 % runtime_.workers()));
    }
  }
  TaskRef<> add(Graph& graph, const GraphSpec& spec, std::uint32_t id) {
    const NodeSpec& n = spec.nodes[id];
    const Node node{before_.data() + n.first_before,
                    spec.seed,
                    n.before_count,
                    id,
                    n.tree_fails ? kNever : n.fail_at,
                    n.tree_fails ? n.fail_at : kNever,
                    n.stop_at,
                    n.emits,
                    n.tree_depth,
                    memory_,
                    bias_};
    if (!n.returns) return graph.add(node, n.priority);
    const auto ref = graph.add(ReturningNode{node}, n.priority);
    returning_.push_back({id, ref});
    return {ref.index, ref.result_offset, ref.graph};
  }
  static void add_edges(Graph& graph, const GraphSpec& spec, const std::vector<TaskRef<>>& refs) {
    for (std::uint32_t id = 0; id < spec.size(); ++id) {
      const NodeSpec& node = spec.nodes[id];
      for (std::uint32_t i = 0; i < node.before_count; ++i) graph.edge(refs[spec.before_of(node)[i]], refs[id]);
    }
  }

  void submit_all(const Executable& executable, const Case& one) {
    const auto share = [&](std::size_t first, std::size_t step) {
      for (std::size_t r = first; r < one.runs.size(); r += step) runs_[r] = submit(executable, one, r);
    };
    if (!one.two_submitters) return share(0, 1);
    std::thread other(share, 1, 2);
    share(0, 2);
    other.join();
  }
  Run submit(const Executable& executable, const Case& one, std::size_t r) {
    const RunSpec& spec = one.runs[r];
    const std::size_t n = one.graph.size();
    const auto memory = set(memory_, memory_at(banks_.data() + r * bank_words(n), n, spec.salt));
    if (!spec.sets_bias) return runtime_.submit(executable, memory, repeat(spec.repeat), spec.priority);
    for (;;)
      if (auto run = runtime_.try_submit(executable, spec.priority, repeat(spec.repeat), memory, set(bias_, spec.bias)))
        return *run;
  }

  static void cancel(const RunSpec& spec, Run& run, Evidence& seen) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(spec.cancel_after_us);
    while (std::chrono::steady_clock::now() < until) {}
    run.cancel();
    seen.cancel_requested = true;
  }

  /// Reads the stream, waits for the end, takes status and results.
  void follow(const GraphSpec& graph, Run& run, Evidence& seen) {
    while (const auto value = run.next<std::uint64_t>()) seen.emitted.push_back(*value);
    seen.iterations = run.iterations();
    seen.account = Account(graph.size());
    try {
      run.wait();
      for (const auto& [id, ref] : returning_) seen.results.emplace_back(id, run.get(ref));
    } catch (const RunError& error) {
      const bool own = error.status() == Status::task_failed;
      seen.code = own ? kUserStatus + error.user_code() : static_cast<std::uint32_t>(error.status());
      seen.message = error.what();
    }
  }

  void judge(const Case& one, std::size_t r, Evidence& seen, const std::uint64_t* bank) {
    seen.compiled = compiled_;
    const std::uint32_t n = one.graph.size();
    const RunMemory memory = memory_at(const_cast<std::uint64_t*>(bank), n, 0);
    seen.account.value.assign(memory.value, memory.value + n);
    seen.account.extra.assign(memory.extra, memory.extra + n);
    seen.account.count.assign(memory.count, memory.count + n);
    seen.account.sprouts.assign(memory.sprouts, memory.sprouts + n);
    seen.early = *memory.early;
    const std::string problem = RunCheck(one, r, seen)();
    if (!problem.empty()) tally_.report(problem + seen.message);
    count(seen);
  }
  void count(const Evidence& seen) {
    const auto sum = [](const std::vector<std::uint32_t>& of) {
      return std::accumulate(of.begin(), of.end(), std::uint64_t{0});
    };
    tally_.runs.fetch_add(1, std::memory_order_relaxed);
    tally_.executions.fetch_add(sum(seen.account.count), std::memory_order_relaxed);
    tally_.spawned.fetch_add(sum(seen.account.sprouts), std::memory_order_relaxed);
    tally_.failed.fetch_add(seen.code >= kUserStatus, std::memory_order_relaxed);
    tally_.cancelled.fetch_add(seen.code == static_cast<std::uint32_t>(Status::cancelled), std::memory_order_relaxed);
    tally_.streamed.fetch_add(seen.emitted.size(), std::memory_order_relaxed);
  }

  Runtime& runtime_;
  Tally& tally_;
  std::uint32_t most_;
  bool compiled_;
  Buffer<std::uint32_t> before_;
  Buffer<std::uint64_t> banks_;
  std::vector<Run> runs_;
  Param<RunMemory> memory_{};
  Param<std::uint32_t> bias_{};
  std::vector<std::pair<std::uint32_t, TaskRef<std::uint64_t>>> returning_;
};

inline void print_progress(const Tally& tally, std::uint64_t first_seed) {
  std::printf(
      "seed %llu: %llu graphs, %llu runs (%llu failed, %llu cancelled), %llu tasks and %llu spawned, %llu "
      "values streamed\n",
      static_cast<unsigned long long>(first_seed), static_cast<unsigned long long>(tally.graphs),
      static_cast<unsigned long long>(tally.runs), static_cast<unsigned long long>(tally.failed),
      static_cast<unsigned long long>(tally.cancelled), static_cast<unsigned long long>(tally.executions),
      static_cast<unsigned long long>(tally.spawned), static_cast<unsigned long long>(tally.streamed));
  std::fflush(stdout);
}

/// A campaign in which something never happened has not tested it.
inline void check_variety(const Campaign& plan, Tally& tally) {
  if (plan.graphs < 100 || tally.bad) return;
  if (!tally.failed) tally.report("no run of the campaign failed");
  if (!tally.cancelled) tally.report("no run of the campaign was cancelled");
  if (!tally.streamed) tally.report("no task of the campaign streamed a value");
  if (!plan.compiled && !tally.spawned) tally.report("no task of the campaign spawned another");
}

/// Runs the graphs of seeds first_seed, first_seed + 1, ... and checks all of them; stops at the first
/// mismatch.
inline void run_campaign(Runtime& runtime, const Campaign& plan, Tally& tally) {
  std::atomic<std::uint32_t> next{0};
  const auto work = [&] {
    try {
      Lane lane(runtime, tally, plan);
      for (std::uint32_t i; !tally.bad && (i = next.fetch_add(1, std::memory_order_relaxed)) < plan.graphs;) {
        lane(make_case(plan.first_seed + i, plan.most_tasks, plan.compiled));
        if (i % 1000 == 999) print_progress(tally, plan.first_seed);
      }
    } catch (const std::exception& error) {
      tally.report(std::string("an exception: ") + error.what());
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < plan.threads; ++t) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  print_progress(tally, plan.first_seed);
  check_variety(plan, tally);
}

}  // namespace flywheel::testing
