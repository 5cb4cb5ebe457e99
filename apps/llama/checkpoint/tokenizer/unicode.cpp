#include "apps/llama/checkpoint/tokenizer/unicode.hpp"

#include <algorithm>
#include <span>

#include "apps/llama/checkpoint/tokenizer/unicode_table.hpp"

namespace llama {
namespace {

bool contains(std::span<const CodeRange> table, std::uint32_t code_point) {
  const auto after = std::ranges::upper_bound(table, code_point, {}, &CodeRange::first);
  return after != table.begin() && code_point <= std::prev(after)->last;
}

}  // namespace

CharClass class_of(std::uint32_t code_point) {
  if (contains(kLetters, code_point)) return CharClass::kLetter;
  if (contains(kSpaces, code_point)) return CharClass::kSpace;
  if (contains(kNumbers, code_point)) return CharClass::kNumber;
  return CharClass::kOther;
}

}  // namespace llama
