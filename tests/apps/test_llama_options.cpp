// How a runtime for the tuned decode is started.
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/portable/options.hpp"
#include "apps/llama/tuned/options.hpp"
#include "catch.hpp"

namespace llama {

TEST_CASE("options: more texts have a smaller window, unless one is asked for") {
  const Config& config = *find_shape("llama-3.2-1b");
  const auto window_of = [&](int texts, std::uint32_t asked) {
    return tuned_options(config, {.context = 64, .texts = texts}, {.target = Target::cpu, .tuning = {.operand_window = asked}})
        .tuning.operand_window;
  };
  CHECK(window_of(1, kBestWindow) == 78u << 10);
  CHECK(window_of(4, kBestWindow) == 78u << 10);
  CHECK(window_of(8, kBestWindow) == 52u << 10);
  for (const int texts : {1, 8})
    for (const std::uint32_t asked : {26u << 10, 78u << 10}) CHECK(window_of(texts, asked) == asked);
  CHECK(
      portable_options(config, 64, {.target = Target::cpu, .tuning = {.operand_window = kBestWindow}}).tuning.operand_window ==
      78u << 10);
}

}  // namespace llama
