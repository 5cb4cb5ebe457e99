// Texts as Python sees them: sequences of characters. A byte that is no UTF-8 is a character of its own, and stays as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace llama::jinja {

/// Bytes of the character in front; `text` is not empty.
std::size_t character_size(std::string_view text);
std::size_t count_characters(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);

/// Whitespace by str.isspace().
bool is_space(std::uint32_t code_point);
std::size_t leading_space(std::string_view text);  // bytes
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
std::string_view strip(std::string_view text);

/// The same of any of the characters in `set`.
std::string_view strip_left(std::string_view text, std::string_view set);
std::string_view strip_right(std::string_view text, std::string_view set);

/// ASCII letters change, others stay as they are.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalized(std::string_view text);  // the first is upper case, the others lower
/// Where `begins(previous character)` says so a letter is upper case; all others are lower.
std::string titled(std::string_view text, const std::function<bool(char previous)>& begins);

/// UTF-8 of a code point; of one that there is not, U+FFFD.
std::string utf8_of(std::uint32_t code_point);

}  // namespace llama::jinja
