// What the tests of the small random models share. tools/golden_families.py makes the models and says what
// they are.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "llama_run_support.hpp"

namespace llama {

/// Float sums in another order than PyTorch's and another exp leave 2.7e-6 at most on CPU workers; PyTorch's
/// own float logits are up to 2.4e-6 from those of its float64.
inline constexpr double kMostFamilyError = 1e-5;
inline constexpr int kFamilyContext = 128;  // room for the 8 + 64 positions
inline constexpr std::size_t kPromptOfGreedy = 8;

inline constexpr std::array kScaledFamilies{"llama3", "llama3_tied", "llama3_heads64"};
inline constexpr std::array kNormedFamilies{"qwen3", "qwen3_untied", "qwen3_heads64"};
inline constexpr std::array kBiasedFamilies{"qwen2", "qwen2_heads80", "qwen2_window"};
inline constexpr std::array kFamilies{"llama3",  "llama3_tied",    "llama3_heads64", "llama_heads96", "llama_heads256",
                                      "mistral", "mistral_window", "qwen2",          "qwen2_heads80", "qwen2_window",
                                      "qwen3",   "qwen3_untied",   "qwen3_heads64"};
/// Those that the tuned decode takes, too.
inline constexpr std::array kTunedFamilies{"llama3_heads64", "llama_heads96",  "llama_heads256",
                                           "mistral",        "mistral_window", "qwen2",
                                           "qwen2_heads80",  "qwen3",          "qwen3_heads64"};

/// Those whose prompts matrix products read.
inline constexpr std::array kProductFamilies{"llama3_heads64", "llama_heads96", "mistral",      "mistral_window",
                                             "qwen2",          "qwen3",         "qwen3_heads64"};

/// Models whose layers, or some of them, attend to the last positions alone.
struct WindowedFamily {
  const char* name;
  std::size_t window;
};
inline constexpr std::array kWindowedFamilies{WindowedFamily{"mistral_window", 24}, WindowedFamily{"qwen2_window", 16}};

inline std::filesystem::path family_folder(const std::string& name) { return kGoldenFolder / "families" / name; }

/// What transformers computes for one of the models.
struct FamilyGolden {
  explicit FamilyGolden(const std::string& name) {
    const SafeTensors file = SafeTensors::open(family_folder(name) / "golden.safetensors");
    ids = integers(file.at("ids"));
    greedy = integers(file.at("greedy"));
    logits = to_floats(file.at("logits"));
    gap = to_floats(file.at("gap"));
  }
  std::span<const float> at(std::size_t position) const {
    const std::size_t vocabulary = logits.size() / ids.size();
    return std::span(logits).subspan(position * vocabulary, vocabulary);
  }
  float least_gap() const { return *std::ranges::min_element(gap); }
  Request greedy_request() const {
    return {.prompt = {ids.begin(), ids.begin() + kPromptOfGreedy},
            .tokens = static_cast<std::uint32_t>(greedy.size()),
            .sampling = {.temperature = 0},
            .stop_at_end = false};
  }

  std::vector<std::uint32_t> ids, greedy;
  std::vector<float> logits, gap;

 private:
  static std::vector<std::uint32_t> integers(const TensorView& tensor) {
    std::vector<std::uint32_t> values(tensor.count());
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
};

/// The relative error at each position, of the model in `folder` against `golden`.
inline std::vector<double> errors_of(Runtime& runtime, const std::filesystem::path& folder, const FamilyGolden& golden) {
  const auto logits = PortableGenerator(runtime, folder, kFamilyContext).logits(golden.ids);
  std::vector<double> errors;
  for (std::size_t position = 0; position < logits.size(); ++position)
    errors.push_back(relative_error(logits[position], golden.at(position)));
  return errors;
}

}  // namespace llama
