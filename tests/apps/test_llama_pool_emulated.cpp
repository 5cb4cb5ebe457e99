// The pool of blocks that all texts take their cache from, through the GPU's kernel on an emulated GPU.
#include "llama_emulated_support.hpp"
#include "llama_pool_support.hpp"

namespace llama {

TEST_CASE("emulated: texts that want more of the cache than its pool has, each as alone") {
  const StartTuned start = [](const Config& config, int context) { return emulated_runtime(config, context, 3, true); };
  check_pause(start, family_folder("qwen3_heads64"), PromptWay::products);
}

}  // namespace llama
