#pragma once

#include <filesystem>
#include <string_view>

#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"

namespace llama {

// Reads the text of a tokenizer.json; Tokenizer::parse says what it throws.
TokenizerParts read_tokenizer(std::string_view json, const std::filesystem::path& file);

}  // namespace llama
