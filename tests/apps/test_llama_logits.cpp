// The shipped model on CPU workers, against transformers.
#include "catch.hpp"
#include "llama_run_support.hpp"

namespace llama {
namespace {

// The bar is 1e-2; float sums in another order than PyTorch's leave 7e-7 at most.
constexpr double kMostError = 1e-5;

TEST_CASE("logits of the shipped model agree with transformers at every position") {
  const Golden golden;
  REQUIRE(golden.ids.size() == 200);
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder);
  const auto logits = generator.logits(golden.ids);
  REQUIRE(logits.size() == golden.ids.size());
  for (std::size_t position = 0; position < logits.size(); ++position) {
    INFO("position " << position);
    CHECK(relative_error(logits[position], golden.at(position)) < kMostError);
  }
}

TEST_CASE("a wrong id changes the logits by far more than the error allowed") {
  const Golden golden;
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder);
  std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + 8);
  ids[2] = (ids[2] + 1) % 1024;
  CHECK(relative_error(generator.logits(ids).back(), golden.at(7)) > 100 * kMostError);
}

TEST_CASE("logits do not depend on the number of workers") {
  const Golden golden;
  const std::vector<std::uint32_t> ids(golden.ids.begin(), golden.ids.begin() + 40);
  std::vector<std::vector<std::vector<float>>> all;
  for (const std::uint32_t workers : {1u, 2u, 5u}) {
    Runtime runtime = cpu_runtime(workers);
    all.push_back(PortableGenerator(runtime, kModelFolder).logits(ids));
  }
  CHECK(all[0] == all[1]);
  CHECK(all[0] == all[2]);
}

}  // namespace
}  // namespace llama
