// Writing a text with the portable decode.
#pragma once

#include <filesystem>

#include "apps/llama/decode/generator.hpp"
#include "apps/llama/portable/graph.hpp"

namespace llama {

/// Its runtime is made by start_portable_runtime(). Several texts are written one after the other.
class PortableGenerator : public Generator {
 public:
  /// `context`: positions to have room for.
  PortableGenerator(Runtime& runtime, Config config, Weights weights, int context);
  /// `context`: see choose_context(). Throws ModelError for a folder that is no model of a known kind, RequestError for a
  /// context the model was not made for.
  PortableGenerator(Runtime& runtime, const std::filesystem::path& folder, int context = 0);

  std::vector<float> last_logits() const override { return memory_.logits.read(); }
  int sequences() const override { return 1; }
  std::uint32_t tasks() const override { return executable_.size(); }
  /// What it works in, for those who fill the cache.
  PortableMemory& memory() { return memory_; }

 protected:
  void write_texts(const std::vector<Request>& requests, Tally& tally) override;
  Run submit_step(const std::vector<StepState>& states) override;

 private:
  Run submit_text(const Request& request);

  Weights weights_;
  PortableMemory memory_;
  PortableGraph graph_;
  Executable executable_;
};

}  // namespace llama
