// Phased runs of the GPU's kernel on an emulated GPU: what the load warp reads ahead of the phases is what they run, and so is
// what a warp prefetches in front of their boundaries.
#include <random>

#include "support/emulated_bench.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// What becomes of the prefetches of a task.
struct Prefetches {
  std::uint32_t begun, found, dropped;
};

/// Counts its bodies, and how often a warp was ahead of them. Its prefetch leaves a number in scratch memory.
struct Counted {
  std::uint32_t* bodies;
  std::uint32_t* ahead;
  Prefetches* prefetches;
  std::uint32_t number;
  std::uint32_t fails;  // 1: in its first pass

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (Block::kOnGpu) {
      const std::uint32_t* const left = block.template scratch<std::uint32_t>(1);
      if (block.leader() && block.prefetched() && *left == number) add_to(prefetches->found, 1u);
    }
    if (!block.leader()) return;
    add_to(*bodies, 1u);
    if (fails) block.fail(7);
  }
  template <class Block>
  FLYWHEEL_TASK bool prefetch(Block& block) const {
    std::uint32_t* const left = block.template scratch<std::uint32_t>(1);
    if (block.lane() == 0) *left = number, add_to(prefetches->begun, 1u);
    return true;
  }
  template <class Block>
  FLYWHEEL_TASK void drop_prefetched(Block& block) const {
    if (block.lane() == 0) add_to(prefetches->dropped, 1u);
  }
  template <class Lanes>
  FLYWHEEL_TASK void look_ahead(const Lanes& lanes) const {
    if (lanes.lane() == 0) add_to(*ahead, 1u);
  }
};

constexpr std::uint32_t kWorkers = 3;

/// A phased graph of few or many tasks a phase, and what each is to count in one pass.
class PhasedBench {
 public:
  explicit PhasedBench(std::uint64_t seed)
      : random_(seed),
        runtime_(start_emulated<Counted>(quiet())),
        bodies_(runtime_.allocate<std::uint32_t>(kMost)),
        ahead_(runtime_.allocate<std::uint32_t>(kMost)),
        prefetches_(runtime_.allocate<Prefetches>(kMost)) {
    bodies_.write(std::vector<std::uint32_t>(kMost));
    ahead_.write(std::vector<std::uint32_t>(kMost));
    prefetches_.write(std::vector<Prefetches>(kMost));
    for (std::uint32_t phases = 1 + random_() % 9; phases; --phases) add_phase();
  }

  /// Of a run of so many passes.
  void check(std::uint32_t passes) {
    runtime_.submit(runtime_.load(graph_), repeat(passes)).wait();
    const std::vector<std::uint32_t> bodies = bodies_.read(), ahead = ahead_.read();
    const std::vector<Prefetches> prefetches = prefetches_.read();
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      CHECK(bodies[i] == passes * wanted_[i].bodies);
      CHECK(ahead[i] == passes * wanted_[i].ahead);
      // No boundary of the run lies before its first phase.
      CHECK(prefetches[i].begun == (passes - (wanted_[i].is_of_first ? 1 : 0)) * wanted_[i].ahead);
      CHECK(prefetches[i].found == prefetches[i].begun);
      CHECK(prefetches[i].dropped == 0);
    }
  }
  /// A task of the first phase fails: no later phase has run, and the next run finds all as it should be.
  void check_failure() {
    Graph failing;
    failing.phase();
    failing.add(Counted{bodies_.data() + kMost - 1, ahead_.data() + kMost - 1, prefetches_.data() + kMost - 1, 900, 1});
    for (int i = 0; i < 6; ++i) {
      failing.phase();
      failing.add(Counted{bodies_.data() + kMost - 2, ahead_.data() + kMost - 1, prefetches_.data() + kMost - 2, 901, 0});
    }
    CHECK_THROWS_AS(runtime_.submit(runtime_.load(failing)).wait(), RunError);
    CHECK(bodies_.read()[kMost - 2] == 0);
    const Prefetches of_second = prefetches_.read()[kMost - 2];
    CHECK(of_second.begun == 1);
    CHECK(of_second.dropped == 1);
    CHECK(of_second.found == 0);
  }

 private:
  struct Counts {
    std::uint32_t bodies, ahead;
    bool is_of_first;  // phase
  };
  static constexpr std::size_t kMost = 128;

  static Options quiet() {
    Options options = emulated_options(kWorkers);
    options.log_level = "off";
    options.yield_every = {};  // a run that goes on after it was suspended is read ahead from there anew
    return options;
  }
  Counted next() const {
    const std::size_t at = wanted_.size();
    return {bodies_.data() + at, ahead_.data() + at, prefetches_.data() + at, static_cast<std::uint32_t>(at), 0};
  }
  void add_phase() {
    const bool is_first = wanted_.empty();
    if (random_() % 4 == 0) {
      graph_.add_grid(next());
      wanted_.push_back({kWorkers, kWorkers, is_first});
      return;
    }
    graph_.phase();
    const std::uint32_t tasks = 1 + random_() % 7;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      graph_.add(next());
      wanted_.push_back({1, i < kWorkers ? 1u : 0u, is_first});
    }
  }

  std::mt19937_64 random_;
  Runtime runtime_;
  Buffer<std::uint32_t> bodies_, ahead_;
  Buffer<Prefetches> prefetches_;
  Graph graph_;
  std::vector<Counts> wanted_;
};

}  // namespace

TEST_CASE("kernel, look ahead: the first task of each worker and phase, once a pass") {
  FLYWHEEL_TEST_SEED(seed);
  for (std::uint64_t round = 0; round < 10; ++round) {
    PhasedBench bench(mix(seed, round));
    if (round % 2) bench.check_failure();
    bench.check(1 + static_cast<std::uint32_t>(mix(seed, round) % 5));
  }
}
