// Small random models of all families on a GPU, against transformers and against CPU workers.
#include "catch.hpp"
#include "llama_families_support.hpp"

namespace llama {
namespace {

Runtime gpu_runtime() { return start_portable_runtime({.target = Target::gpu}); }

TEST_CASE("logits of all families on the GPU agree with transformers at every position") {
  const std::string name = GENERATE(from_range(kFamilies));
  const FamilyGolden golden(name);
  Runtime runtime = gpu_runtime();
  REQUIRE(runtime.on_gpu());
  const auto errors = errors_of(runtime, family_folder(name), golden);
  REQUIRE(errors.size() == golden.ids.size());
  for (std::size_t position = 0; position < errors.size(); ++position) {
    INFO(name << " at position " << position);
    CHECK(errors[position] < kMostFamilyError);
  }
}

TEST_CASE("on the GPU all families write the likeliest tokens that transformers writes") {
  const std::string name = GENERATE(from_range(kFamilies));
  INFO(name);
  const FamilyGolden golden(name);
  REQUIRE(golden.least_gap() > 1e-3);
  Runtime runtime = gpu_runtime();
  PortableGenerator generator(runtime, family_folder(name), kFamilyContext);
  CHECK(write_tokens(generator, golden.greedy_request()) == golden.greedy);
}

TEST_CASE("logits of all families on the GPU are those of the CPU, bit for bit") {
  const std::string name = GENERATE(from_range(kFamilies));
  INFO(name);
  const FamilyGolden golden(name);
  Runtime cpu = cpu_runtime(), gpu = gpu_runtime();
  PortableGenerator on_cpu(cpu, family_folder(name), kFamilyContext), on_gpu(gpu, family_folder(name), kFamilyContext);
  CHECK(on_cpu.logits(golden.ids) == on_gpu.logits(golden.ids));
}

}  // namespace
}  // namespace llama
