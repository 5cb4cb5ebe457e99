// One graph, searched by all systems in turns; every search is compared with one on the host.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "apps/bfs/engine.hpp"
#include "apps/bfs/options.hpp"
#include "apps/measure/results.hpp"

namespace bfs {

/// A graph to be searched. `name`: of its rows, "grid" or "22".
struct Subject {
  std::string name;
  EdgeSource edges;
  Method best;                 // the method that the row bfs_<name> is of
  std::vector<Method> others;  // measured beside it
};
/// The subjects that the options ask for.
std::vector<Subject> subjects_of(const Options& options);

struct TrialResult {
  std::vector<measure::Row> rows = {};
  std::vector<std::string> failures = {};
};

/// Makes the graph and measures it. Says on `log` what graph it is and what the searches are like.
///
/// Rows, in ms: grain.bfs_<name>, by the subject's best method; grain.bfs_<name>.<method> of the others; grain.sssp_<name>,
/// delta stepping from the first root; and on a GPU the peer grain.bfs_<name>.cuda_graph.
TrialResult run_trial(Engine& engine, const Subject& subject, const Options& options, const measure::Stamp& stamp,
                      bool with_peer, std::ostream& log);

}  // namespace bfs
