// Texts taken apart and put together, as Python's split(), join() and replace() do it.
#pragma once

#include <string>
#include <string_view>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// Between whitespace, with at most `most` cuts; below 0: all.
Values words_of(Budget& budget, std::string_view text, std::int64_t most);
Values words_from_right(Budget& budget, std::string_view text, std::int64_t most);
/// Between separators. Throws Problem for one that is empty.
Values parts_of(Budget& budget, std::string_view text, std::string_view separator, std::int64_t most);
Values parts_from_right(Budget& budget, std::string_view text, std::string_view separator, std::int64_t most);
Values lines_of(Budget& budget, std::string_view text, bool keep_ends);

/// At most `most` times; below 0: everywhere.
std::string replaced(Budget& budget, std::string_view text, std::string_view old, std::string_view with, std::int64_t most);
/// Throws Problem for an element that is no string.
std::string joined_texts(Budget& budget, const Value& elements, std::string_view separator);

}  // namespace llama::jinja
