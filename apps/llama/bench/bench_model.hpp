// The model to be measured: a folder's, or random weights of a published shape or of sizes in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/llama/checkpoint/weights.hpp"

namespace llama {

struct BenchModel {
  std::string name;  // in rows of results: "llama-3.2-1b"
  Config config;
  std::filesystem::path folder = {};  // empty: random weights
  std::uint64_t seed = 1623;          // of those

  Weights weights(Runtime& runtime) const;
};

/// Exactly one of the two is given. A shape is a published model's name, or a file FILE.json with what a config.json says:
/// then rows are called FILE. Throws RequestError for a shape that is unknown, ModelError for a folder that is no model and
/// for a file that is no config.json.
BenchModel find_bench_model(const std::string& shape, const std::filesystem::path& folder);

}  // namespace llama
