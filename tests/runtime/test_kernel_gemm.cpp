// Matrix products of the GPU's kernel on an emulated GPU, by mma.
#include "support/emulated_bench.hpp"

#include "device/gemm/gemm.cuh"
#include "support/gemm_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("kernel, gemm: products agree with sums in double") {
  FLYWHEEL_TEST_SEED(seed);
  Options options = emulated_options();
  options.scratch_bytes = detail::least_scratch(256);
  Runtime runtime = start_emulated<Gemm<AddPlace>, Gemm<JoinPlace>>(options);
  for (std::uint64_t round = 0; round < 4; ++round) {
    GemmBench<AddPlace>(runtime, GemmCase(mix(seed, round), 150, 130, false)).check();
    GemmBench<JoinPlace>(runtime, GemmCase(mix(seed, ~round), 150, 130, true)).check();
  }
}
