// Matrix products on a GPU, by wgmma in dynamic and phased runs and by mma in compiled ones.
#include <flywheel/task.cuh>

#include "support/gemm_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

template <class Epilogue>
void check_shapes(std::uint64_t seed, bool joins) {
  for (const std::uint32_t scratch : {kGemmScratchBytes, detail::least_scratch(256)}) {
    Options options;
    options.target = Target::gpu;
    options.scratch_bytes = scratch;
    Runtime runtime = start<Gemm<Epilogue>>(options);
    for (std::uint64_t round = 0; round < 40; ++round)
      GemmBench<Epilogue>(runtime, GemmCase(mix(seed, round), 600, 900, joins)).check();
  }
}

}  // namespace

TEST_CASE("gemm: products of all shapes agree with sums in double") {
  FLYWHEEL_TEST_SEED(seed);
  check_shapes<AddPlace>(seed, false);
}

TEST_CASE("gemm: so do products with a second B") {
  FLYWHEEL_TEST_SEED(seed);
  check_shapes<JoinPlace>(seed, true);
}

TEST_CASE("gemm: one product reads what another has written, again and again") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr std::uint32_t kSize = 1024;
  Options options;
  options.target = Target::gpu;
  options.scratch_bytes = kGemmScratchBytes;
  Runtime runtime = start<Gemm<>>(options);
  // A permutation matrix: the product moves the columns, and each bit stays as it is.
  std::vector<std::uint32_t> from(kSize);
  for (std::uint32_t i = 0; i < kSize; ++i) from[i] = (i * 385 + 17) % kSize;
  std::vector<Bf16> turn(kSize * kSize), values(kSize * kSize), want(kSize * kSize);
  for (std::uint32_t i = 0; i < kSize; ++i) turn[i * kSize + from[i]] = Bf16::nearest(1);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (Bf16& one : values) one = Bf16::nearest(static_cast<float>(random() % 1000) - 500);
  const auto moves = runtime.upload(turn), here = runtime.upload(values), there = runtime.allocate<Bf16>(kSize * kSize);
  const auto matrix = [](const Buffer<Bf16>& of) { return Matrix{of.data(), kSize, kSize}; };
  const Product out(runtime, matrix(here), matrix(moves), matrix(there)),
      back(runtime, matrix(there), matrix(moves), matrix(here));
  constexpr std::uint32_t kTimes = 50;
  const bool phased = GENERATE(false, true);
  Graph graph;
  if (phased) {
    graph.phase();
    out.add_to(graph);
    graph.phase();
    back.add_to(graph);
  } else {
    back.add_to(graph, after(out.add_to(graph)));
  }
  runtime.submit(runtime.load(graph), repeat(kTimes)).wait();
  for (std::uint32_t row = 0; row < kSize; ++row) {
    for (std::uint32_t column = 0; column < kSize; ++column) {
      std::uint32_t at = column;
      for (std::uint32_t time = 0; time < 2 * kTimes; ++time) at = from[at];
      want[row * kSize + column] = values[row * kSize + at];
    }
  }
  const std::vector<Bf16> found = here.read();
  CHECK(std::memcmp(found.data(), want.data(), want.size() * sizeof(Bf16)) == 0);
}
