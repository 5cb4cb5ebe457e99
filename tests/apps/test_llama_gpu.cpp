// The shipped model on a GPU: the same numbers as on CPU workers, to the last bit.
#include "catch.hpp"
#include "llama_run_support.hpp"

namespace llama {
namespace {

Runtime gpu_runtime() { return start_portable_runtime({.target = Target::gpu}); }

const std::vector<std::uint32_t> kPrompt{50, 47, 200};

TEST_CASE("logits on the GPU agree with transformers at every position") {
  const Golden golden;
  Runtime runtime = gpu_runtime();
  REQUIRE(runtime.on_gpu());
  PortableGenerator generator(runtime, kModelFolder);
  CHECK(worst_error(generator.logits(golden.ids), golden) < 1e-5);
}

TEST_CASE("logits on the GPU are those of the CPU, bit for bit") {
  const Golden golden;
  Runtime cpu = cpu_runtime(), gpu = gpu_runtime();
  CHECK(PortableGenerator(cpu, kModelFolder).logits(golden.ids) == PortableGenerator(gpu, kModelFolder).logits(golden.ids));
}

TEST_CASE("GPU and CPU write the same text, greedy and drawn") {
  Runtime cpu = cpu_runtime(), gpu = gpu_runtime();
  PortableGenerator on_cpu(cpu, kModelFolder), on_gpu(gpu, kModelFolder);
  Request request{.prompt = kPrompt, .tokens = 256, .sampling = {}, .stop_at_end = false};
  const auto greedy = write_tokens(on_gpu, request);
  CHECK(greedy.size() == 256);
  CHECK(greedy == write_tokens(on_cpu, request));
  request.tokens = 500;
  request.sampling = {.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .seed = 1623};
  CHECK(write_tokens(on_gpu, request) == write_tokens(on_cpu, request));
}

}  // namespace
}  // namespace llama
