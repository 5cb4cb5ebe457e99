#include "apps/bfs/trial.hpp"

#include <algorithm>
#include <ostream>

#include "apps/bfs/level_peer.hpp"
#include "apps/measure/measurement.hpp"

namespace bfs {
namespace {

using measure::Measurement;
using measure::Samples;

const char* name_of(Method method) {
  constexpr const char* kNames[] = {"levels", "top_down", "regions", "delta"};
  return kNames[static_cast<int>(method)];
}

class Trial {
 public:
  Trial(Engine& engine, const Subject& subject, const Options& options, std::ostream& log)
      : engine_(engine),
        subject_(subject),
        prefix_("grain.bfs_" + subject.name),
        repeat_(options.quick ? 3 : static_cast<int>(options.repeat)),
        log_(log) {
    engine_.set_delta(options.delta);
    const double made_ms = engine_.make_graph(subject.edges);
    const HostGraph graph = engine_.graph();
    roots_ =
        subject.edges.kind == EdgeKind::rmat ? some_roots(graph, options.roots, options.seed) : std::vector<std::uint32_t>{0};
    log_ << prefix_ << ": " << graph.vertices() << " vertices, " << graph.targets.size() << " directed edges, made in "
         << made_ms << " ms\n";
    for (const std::uint32_t root : roots_) expect_from(graph, root);
    if (subject_.best == Method::levels) show_steps();
    shortest_ = plain_shortest(graph, roots_.front());
    shortest_edges_ = traversed_edges(graph, shortest_);
  }

  std::vector<Measurement> measurements(bool with_peer) {
    const std::string peer = with_peer ? prefix_ + ".cuda_graph" : "";
    std::vector<Measurement> rows{row(prefix_, peer, [this] { return turn_of(subject_.best); })};
    for (const Method method : subject_.others)
      rows.push_back(row(prefix_ + "." + name_of(method), peer, [this, method] { return turn_of(method); }));
    if (with_peer) rows.push_back(row(peer, "", [this] { return turn_of_peer(); }));
    rows.push_back(row("grain.sssp_" + subject_.name, "", [this] { return turn_of_delta(); }));
    return rows;
  }

  /// Billions of traversed edges a second, from the edges of all roots and the time that a search takes.
  double gteps(const measure::Row& row) const {
    const bool is_bfs = row.name.starts_with(prefix_);
    const double edges = is_bfs ? edges_ / static_cast<double>(roots_.size()) : static_cast<double>(shortest_edges_);
    return edges / row.p50 / 1e6;
  }

 private:
  static Measurement row(const std::string& name, const std::string& peer, std::function<Samples()> round) {
    return {.name = name, .unit = "ms", .peer = peer, .round = std::move(round), .needs_gpu = false};
  }

  void expect_from(const HostGraph& graph, std::uint32_t root) {
    expected_.push_back(plain_bfs(graph, root));
    const std::uint64_t edges = traversed_edges(graph, expected_.back());
    edges_ += static_cast<double>(edges);
    log_ << "  root " << root << ": " << deepest(expected_.back()) << " levels, " << edges << " edges traversed\n";
  }

  /// Of a search that has had one to warm up. A letter for each step as in LevelPeer::steps(), its frontier and its time.
  void show_steps() {
    for (const std::uint32_t root : roots_) {
      for (int times = 0; times < 2; ++times) engine_.search(Method::levels, root);
      const std::vector<StepRecord> steps = engine_.steps();
      log_ << "  root " << root << ": steps, their frontiers and us:";
      for (std::size_t i = 0; i + 1 < steps.size(); ++i)
        log_ << "  "
             << "tbg"[static_cast<int>(steps[i].step)] << ' ' << steps[i].items << ' '
             << static_cast<double>(steps[i + 1].begin_ns - steps[i].begin_ns) / 1'000;
      log_ << '\n';
    }
  }

  Samples turn_of(Method method) {
    return turn([&](std::size_t r) { return engine_.search(method, roots_[r]); });
  }
  /// Of each root: once to warm up, then timed; all are checked.
  template <class Search>
  Samples turn(Search&& search) {
    Samples times;
    for (std::size_t r = 0; r < roots_.size(); ++r)
      for (int i = 0; i <= repeat_; ++i) {
        const double spent = search(r);
        check_distances(expected_[r], engine_.distances());
        if (i > 0) times.push_back(spent);
      }
    return times;
  }
  Samples turn_of_peer() {
    const auto quiet = engine_.pause();
    const auto peer = make_level_peer(engine_.level_memory(), subject_.best == Method::levels);
    std::size_t prepared = ~std::size_t{0};
    return turn([&](std::size_t r) {
      if (prepared != r) {
        peer->prepare(roots_[r]);
        prepared = r;
        if (peer->steps().size() < 100) log_ << "  root " << roots_[r] << ": steps of the peer " << peer->steps() << "\n";
      }
      return peer->run();
    });
  }
  Samples turn_of_delta() {
    Samples times;
    for (int i = 0; i <= repeat_; ++i) {
      const double spent = engine_.search(Method::delta, roots_.front());
      check_distances(shortest_, engine_.distances());
      if (i > 0) times.push_back(spent);
    }
    return times;
  }

  Engine& engine_;
  const Subject& subject_;
  const std::string prefix_;
  const int repeat_;
  std::ostream& log_;
  std::vector<std::uint32_t> roots_;
  std::vector<std::vector<std::uint32_t>> expected_;  // of each root
  std::vector<std::uint32_t> shortest_;               // from the first, by weights
  double edges_ = 0;
  std::uint64_t shortest_edges_ = 0;
};

}  // namespace

std::vector<Subject> subjects_of(const Options& options) {
  std::vector<Subject> subjects;
  if (options.grid) {
    const std::string name = options.grid == 2048 ? "grid" : "grid_" + std::to_string(options.grid);
    subjects.push_back({name, grid_edges(options.grid, options.seed), Method::regions, {Method::top_down}});
  }
  if (options.scale)
    subjects.push_back({std::to_string(options.scale), rmat_edges(options.scale, options.seed), Method::levels, {}});
  return subjects;
}

TrialResult run_trial(Engine& engine, const Subject& subject, const Options& options, const measure::Stamp& stamp,
                      bool with_peer, std::ostream& log) {
  Trial trial(engine, subject, options, log);
  const std::vector<Measurement> measurements = trial.measurements(with_peer);
  const std::vector<measure::Outcome> outcomes = measure::interleave(measurements, options.quick ? 1 : options.rounds);
  TrialResult result{.rows = make_rows(measurements, outcomes, stamp)};
  for (measure::Row& row : result.rows) row.numbers = {{"gteps", measure::five_digits(trial.gteps(row))}};
  for (std::size_t i = 0; i < measurements.size(); ++i)
    if (!outcomes[i].error.empty()) result.failures.push_back(measurements[i].name + ": " + outcomes[i].error);
  return result;
}

}  // namespace bfs
