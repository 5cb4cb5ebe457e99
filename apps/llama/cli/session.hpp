// A loaded model with all that writing with it needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "apps/llama/decode/generator.hpp"

namespace llama {

/// Where the model lies and where it runs.
struct Setup {
  std::filesystem::path model;  // empty: find_model()
  Target target = Target::automatic;
  int context = 0;            // 0: see choose_context()
  std::uint32_t workers = 0;  // 0: see Options
  bool tuned = false;         // the compiled decode in place of the portable one
};

/// Its members stand in the order in which they may go.
struct Session {
  /// Throws ModelError for a model that is missing or damaged, RequestError for a context that it was not made for.
  explicit Session(const Setup& setup, int texts = 1);

  /// `wanted`, or 256 for 0, but no more than the context has room for behind a prompt; 1 where it has none.
  std::uint32_t tokens_behind(std::size_t prompt, std::uint32_t wanted) const;

  std::filesystem::path folder;
  Tokenizer tokenizer;
  Runtime runtime;
  std::unique_ptr<Generator> generator;
};

}  // namespace llama
