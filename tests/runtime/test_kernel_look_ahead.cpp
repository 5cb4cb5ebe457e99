// Phased runs of the GPU's kernel on an emulated GPU: what the load warp reads ahead of the phases is what they run.
#include <random>

#include "support/emulated_bench.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Counts its bodies, and how often a warp was ahead of them.
struct Counted {
  std::uint32_t* bodies;
  std::uint32_t* ahead;
  std::uint32_t fails;  // 1: in its first pass

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    add_to(*bodies, 1u);
    if (fails) block.fail(7);
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
        ahead_(runtime_.allocate<std::uint32_t>(kMost)) {
    bodies_.write(std::vector<std::uint32_t>(kMost));
    ahead_.write(std::vector<std::uint32_t>(kMost));
    for (std::uint32_t phases = 1 + random_() % 9; phases; --phases) add_phase();
  }

  /// Of a run of so many passes.
  void check(std::uint32_t passes) {
    runtime_.submit(runtime_.load(graph_), repeat(passes)).wait();
    const std::vector<std::uint32_t> bodies = bodies_.read(), ahead = ahead_.read();
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      CHECK(bodies[i] == passes * wanted_[i].bodies);
      CHECK(ahead[i] == passes * wanted_[i].ahead);
    }
  }
  /// A task of the first phase fails: no later phase has run, and the next run finds all as it should be.
  void check_failure() {
    Graph failing;
    failing.phase();
    failing.add(Counted{bodies_.data() + kMost - 1, ahead_.data() + kMost - 1, 1});
    for (int i = 0; i < 6; ++i) {
      failing.phase();
      failing.add(Counted{bodies_.data() + kMost - 2, ahead_.data() + kMost - 1, 0});
    }
    CHECK_THROWS_AS(runtime_.submit(runtime_.load(failing)).wait(), RunError);
    CHECK(bodies_.read()[kMost - 2] == 0);
  }

 private:
  struct Counts {
    std::uint32_t bodies, ahead;
  };
  static constexpr std::size_t kMost = 128;

  static Options quiet() {
    Options options = emulated_options(kWorkers);
    options.log_level = "off";
    options.yield_every = {};  // a run that goes on after it was suspended is read ahead from there anew
    return options;
  }
  Counted next() const { return {bodies_.data() + wanted_.size(), ahead_.data() + wanted_.size(), 0}; }
  void add_phase() {
    if (random_() % 4 == 0) {
      graph_.add_grid(next());
      wanted_.push_back({kWorkers, kWorkers});
      return;
    }
    graph_.phase();
    const std::uint32_t tasks = 1 + random_() % 7;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      graph_.add(next());
      wanted_.push_back({1, i < kWorkers ? 1u : 0u});
    }
  }

  std::mt19937_64 random_;
  Runtime runtime_;
  Buffer<std::uint32_t> bodies_, ahead_;
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
