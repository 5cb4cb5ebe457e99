// The shapes of published models, for programs that want a real model's sizes without its files.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

struct Shape {
  const char* name;  // lower case, as in "llama-3.2-1b"
  Config config;     // as the base model's config.json has it; a chat model may end texts with more tokens
};

/// Null for a name that is none of shape_names(). Lives as long as the program.
const Config* find_shape(std::string_view name);

/// In the order family, then size.
std::vector<std::string_view> shape_names();

/// Weights of a model of this shape; a tied output matrix counts once.
std::int64_t parameter_count(const Config& config);

}  // namespace llama
