#include <cstdint>

#include "apps/llama/chat/syntax/lexer.hpp"
#include "apps/llama/chat/values/characters.hpp"

namespace llama::jinja {
namespace {

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/// Reads digits from the front of `text`, at most `most`; gives how many there were.
std::size_t read_digits(std::string_view text, std::size_t most, int base, std::uint32_t& number) {
  std::size_t count = 0;
  for (number = 0; count < most && count < text.size(); ++count) {
    const int digit = hex_digit(text[count]);
    if (digit < 0 || digit >= base) break;
    number = number * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit);
  }
  return count;
}

/// Adds what stands behind a backslash; gives its size.
std::size_t add_escape(std::string_view text, std::string& out) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"\n";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = text.front();
  if (const std::size_t at = kLetters.find(letter); at != kLetters.npos) {
    if (at < kMeanings.size()) out += kMeanings[at];  // a line break behind a backslash goes with it
    return 1;
  }
  std::uint32_t code = 0;
  const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits > 0 && read_digits(text.substr(1), digits, 16, code) == digits) {
    out += utf8_of(code);
    return 1 + digits;
  }
  if (const std::size_t octal = read_digits(text, 3, 8, code); octal > 0) {
    out += utf8_of(code);
    return octal;
  }
  out += '\\';
  return 0;
}

}  // namespace

std::string without_escapes(std::string_view literal) {
  std::string out;
  while (!literal.empty()) {
    const char byte = literal.front();
    literal.remove_prefix(1);
    if (byte != '\\' || literal.empty()) out += byte;
    else literal.remove_prefix(add_escape(literal, out));
  }
  return out;
}

}  // namespace llama::jinja
