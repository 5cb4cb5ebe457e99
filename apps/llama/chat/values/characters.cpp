#include "apps/llama/chat/values/characters.hpp"

#include <algorithm>

#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama::jinja {
namespace {

char upper_of(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }
char lower_of(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

/// Where the last character begins; `text` is not empty.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return character_size(text.substr(at)) == text.size() - at ? at : text.size() - 1;
}

bool holds(std::string_view set, std::string_view character) {
  while (!set.empty()) {
    const std::size_t size = character_size(set);
    if (set.substr(0, size) == character) return true;
    set.remove_prefix(size);
  }
  return false;
}

bool is_space(std::string_view character) {
  const Utf8Step step = read_utf8(character);
  return step.kind == Utf8Step::Kind::kCharacter && jinja::is_space(step.code_point);
}

}  // namespace

std::size_t character_size(std::string_view text) {
  const Utf8Step step = read_utf8(text);
  return step.kind == Utf8Step::Kind::kCharacter ? step.length : 1;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(character_size(text));
  return count;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    all.push_back(text.substr(0, character_size(text)));
    text.remove_prefix(all.back().size());
  }
  return all;
}

bool is_space(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

std::size_t leading_space(std::string_view text) { return text.size() - strip_left(text).size(); }

std::string_view strip_left(std::string_view text) {
  while (!text.empty() && is_space(text.substr(0, character_size(text)))) text.remove_prefix(character_size(text));
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty() && is_space(text.substr(last_character(text)))) text = text.substr(0, last_character(text));
  return text;
}

std::string_view strip(std::string_view text) { return strip_left(strip_right(text)); }

std::string_view strip_left(std::string_view text, std::string_view set) {
  while (!text.empty() && holds(set, text.substr(0, character_size(text)))) text.remove_prefix(character_size(text));
  return text;
}

std::string_view strip_right(std::string_view text, std::string_view set) {
  while (!text.empty() && holds(set, text.substr(last_character(text)))) text = text.substr(0, last_character(text));
  return text;
}

std::string to_upper(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), upper_of);
  return all;
}

std::string to_lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), lower_of);
  return all;
}

std::string capitalized(std::string_view text) {
  std::string all = to_lower(text);
  if (!all.empty()) all.front() = upper_of(all.front());
  return all;
}

std::string titled(std::string_view text, const std::function<bool(char previous)>& begins) {
  std::string all = to_lower(text);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i == 0 || begins(text[i - 1])) all[i] = upper_of(all[i]);
  return all;
}

std::string utf8_of(std::uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = kReplacementCharacter;
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace llama::jinja
