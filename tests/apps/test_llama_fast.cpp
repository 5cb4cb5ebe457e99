// The compiled decode on CPU workers: its portable bodies, graph, cache layout and schedule, against transformers.
#include "catch.hpp"
#include "llama_families_support.hpp"

#include "apps/llama/fast/generate.hpp"
#include "apps/llama/fast/start.hpp"

namespace flywheel::llama {
namespace {

// Keys and values are rounded to bf16, so the error is that of their last bit, not of float sums.
constexpr double kMostError = 1e-2;

Runtime fast_runtime(const Config& config, int context, std::uint32_t workers) {
  Options options;
  options.target = Target::cpu;
  options.workers = workers;
  options.scratch_bytes = fast_scratch_bytes(config, false, context);
  return start_fast_runtime(options);
}

TEST_CASE("compiled: logits of the shipped model agree with transformers, whatever the number of workers") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  const std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + 150);
  for (const std::uint32_t workers : {1u, 3u, 7u}) {
    Runtime runtime = fast_runtime(config, 512, workers);
    FastGenerator generator(runtime, kModelFolder);
    const auto logits = generator.logits(ids);
    double worst = 0;
    for (std::size_t position = 0; position < logits.size(); ++position)
      worst = std::max(worst, relative_error(logits[position], golden.at(position)));
    INFO("workers " << workers << ", worst error " << worst);
    CHECK(worst < kMostError);
  }
}

}  // namespace
}  // namespace flywheel::llama
