#pragma once

#include <cstdint>

namespace llama {

// What the pre-tokenizers' regular expressions tell apart: \p{L}, \p{N}, \s and everything else.
enum class CharClass : std::uint8_t { kLetter, kNumber, kSpace, kOther };

// The class of a Unicode code point, by the tables in unicode_table.hpp.
CharClass class_of(std::uint32_t code_point);

}  // namespace llama
