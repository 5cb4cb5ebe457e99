// The tuned decode of the shipped model through the GPU's kernel, on an emulated GPU, against transformers: control,
// load, compute and store roles, pages and handoffs together, at random paces.
#include "support/emulated_engine.hpp"

#include "apps/llama/fast/attend.cuh"
#include "apps/llama/fast/choose.cuh"
#include "apps/llama/fast/gate.cuh"
#include "apps/llama/fast/generate.hpp"
#include "apps/llama/fast/project.cuh"
#include "apps/llama/fast/start.hpp"
#include "llama_families_support.hpp"

namespace flywheel::llama {
namespace {

/// Makes the list of task types one that no other file has: where nvcc compiles start.cu, the kernel of that list is its.
struct NobodysTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

Runtime emulated_runtime(const Config& config, int context, std::uint32_t pages, bool bulk) {
  Options options;
  options.workers = 3;
  options.log_level = "error";
  options.operand_pages = pages;
  options.bulk_copies = bulk;
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  options.scratch_bytes = fast_scratch_bytes(config, true, context);
  return flywheel::testing::start_emulated<FastEmbed, FastProject, FastAttend, FastGateUp, FastResidual,
                                           FastLogits, FastChoose, NobodysTask>(options);
}

// As on CPU workers: keys and values are rounded to bf16.
constexpr double kMostError = 1e-2;

}  // namespace

TEST_CASE("emulated: logits of the shipped model agree with transformers") {
  const Golden golden;
  const Config config = read_config(kModelFolder);
  for (const bool bulk : {true, false}) {
    const std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + (bulk ? 16 : 6));
    Runtime runtime = emulated_runtime(config, 256, bulk ? 3 : 2, bulk);
    INFO(runtime.device());
    FastGenerator generator(runtime, kModelFolder, 256);
    const double worst = worst_error(generator.logits(ids), golden);
    CHECK(worst < kMostError);
  }
}

// One submission: all steps loop on the device.
TEST_CASE("emulated: a text written greedily is the one of CPU workers") {
  const Config config = read_config(kModelFolder);
  const Golden golden;
  Request request;
  request.prompt.assign(golden.ids.begin(), golden.ids.begin() + 8);
  request.tokens = 16;
  const auto write = [&](Runtime&& runtime) {
    FastGenerator generator(runtime, kModelFolder, 256);
    std::vector<std::uint32_t> tokens;
    generator.generate(request, [&](std::uint32_t token) { tokens.push_back(token); });
    return tokens;
  };
  Options options;
  options.target = Target::cpu;
  options.workers = 2;
  options.scratch_bytes = fast_scratch_bytes(config, false, 256);
  const auto expected = write(start_fast_runtime(options));
  CHECK(expected.size() == 16);
  CHECK(write(emulated_runtime(config, 256, 5, true)) == expected);
}

// With 8 a compute part has two blocks of columns and hands over more often.
TEST_CASE("emulated: several texts at once") {
  const Config config = read_config(kModelFolder);
  for (const int texts : {4, 8}) {
    Runtime runtime = emulated_runtime(config, 64, 3, true);
    INFO(runtime.device() << ", " << texts << " texts");
    FastGenerator generator(runtime, config, load_weights(runtime, config, kModelFolder), 64, texts);
    generator.run(0, 3);
    generator.run(7, 2);
  }
}

}  // namespace flywheel::llama
