#include "apps/bfs/options.hpp"

namespace bfs {

void describe(CLI::App& app, Options& options) {
  app.add_option("--scale", options.scale, "Logarithm of the RMAT graph's vertices; 0: without it (CPU workers: 14)")
      ->check(CLI::Range(0, 25))
      ->capture_default_str();
  app.add_option("--grid", options.grid, "Side of the grid; 0: without it (CPU workers: 128)")
      ->check(CLI::Range(0, 8192))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "What edges, weights and roots are drawn from")->capture_default_str();
  app.add_option("--roots", options.roots, "Roots in the RMAT graph; the grid's is a corner")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Searches of a system in a row, from each root")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--delta", options.delta, "Distances that delta stepping works off together")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds in which the systems take turns")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Workers of the runtime (default: each SM, or each hardware thread)")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--cpu", options.cpu, "CPU workers, also where there is a GPU; without a peer");
  app.add_option("--out", options.out, "Folder of the results file (default apps/bfs/results; with --quick none)");
  app.add_option("--commit", options.commit, "Commit to write into the results");
  app.add_flag("--quick", options.quick, "One round of three searches; writes no file unless --out is given");
}

void make_small(const CLI::App& app, Options& options) {
  if (app.count("--scale") == 0) options.scale = 14;
  if (app.count("--grid") == 0) options.grid = 128;
}

}  // namespace bfs
