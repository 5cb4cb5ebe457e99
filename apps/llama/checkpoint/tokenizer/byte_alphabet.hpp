#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace llama {

// GPT-2's way to write any bytes as printable text, in which a tokenizer.json spells its tokens: printable
// Latin-1 bytes stand for themselves, the other 68 for U+0100 onwards ("Ġ" is the space). This is the way
// back: the bytes of a token as written, or nothing when it has a character outside that alphabet.
std::optional<std::string> bytes_of_token(std::string_view written);

}  // namespace llama
