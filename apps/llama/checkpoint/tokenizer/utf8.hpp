#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llama {

constexpr std::uint32_t kReplacementCharacter = 0xfffd;

// What stands at the front of some bytes.
struct Utf8Step {
  enum class Kind : std::uint8_t { kCharacter, kInvalid, kIncomplete };
  Kind kind = Kind::kInvalid;
  std::uint32_t code_point = kReplacementCharacter;
  // Bytes of the character; of an invalid sequence its longest part that could have begun a character, at
  // least one (the Unicode standard's "maximal subpart"); of an incomplete one all that is left.
  std::size_t length = 1;
};

// Reads the front of `bytes`, which must not be empty. kIncomplete: the bytes end inside a character.
Utf8Step read_utf8(std::string_view bytes);

// Turns bytes that arrive in pieces into valid UTF-8. A piece that ends inside a character is held back until
// the rest comes; what is no UTF-8 becomes U+FFFD, one for each maximal subpart.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // what was held back, as U+FFFD; ready for a new text after it

 private:
  std::string held_;
};

}  // namespace llama
