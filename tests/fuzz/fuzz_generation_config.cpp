// generation_config.json: whatever the text, it is refused with a ModelError or adds ids that are in range, none of them twice.
#include <algorithm>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/checkpoint/error.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

void flywheel::fuzz::run(std::string_view input) {
  Config config;
  config.eos_token_ids = {7, 151'645};
  try {
    parse_generation_config(input, "generation_config.json", config);
  } catch (const ModelError&) {}
  std::vector<int> ids = config.eos_token_ids;
  expect(ids.size() >= 2 && ids[0] == 7 && ids[1] == 151'645, "the ids of config.json stay");
  std::ranges::sort(ids);
  expect(std::ranges::adjacent_find(ids) == ids.end(), "no id stands twice");
  expect(ids.front() >= 0 && ids.back() <= 1 << 24, "ids are in range");
}
