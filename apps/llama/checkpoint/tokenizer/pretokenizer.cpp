#include "apps/llama/checkpoint/tokenizer/pretokenizer.hpp"

#include <array>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/unicode.hpp"
#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama {
namespace {

constexpr std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Char {
  std::size_t offset;
  std::uint32_t code_point;
  CharClass kind;
};

std::vector<Char> classify(std::string_view text) {
  std::vector<Char> chars;
  chars.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const Utf8Step step = read_utf8(text.substr(offset));
    const bool valid = step.kind == Utf8Step::Kind::kCharacter;
    chars.push_back({offset, step.code_point, valid ? class_of(step.code_point) : CharClass::kOther});
    offset += step.length;
  }
  return chars;
}

// Positions below count characters. Each `match_` function tries one alternative of a pattern at `at` and
// returns the end of the match, or `at` where there is none; every match is at least one character long.
class Matcher {
 public:
  Matcher(SplitRule rule, const std::vector<Char>& chars) : rule_(rule), chars_(chars) {}

  // The end of the piece that begins at `at`.
  std::size_t match(std::size_t at) const { return rule_ == SplitRule::kGpt2 ? match_gpt2(at) : match_llama3(at); }

 private:
  bool is(std::size_t at, CharClass kind) const { return at < chars_.size() && chars_[at].kind == kind; }
  bool is_char(std::size_t at, char c) const {
    return at < chars_.size() && chars_[at].code_point == static_cast<unsigned char>(c);
  }
  bool is_newline(std::size_t at) const { return is_char(at, '\r') || is_char(at, '\n'); }

  std::size_t end_of_run(std::size_t at, CharClass kind) const {
    while (is(at, kind)) ++at;
    return at;
  }

  std::size_t match_gpt2(std::size_t at) const;
  std::size_t match_llama3(std::size_t at) const;
  std::size_t match_contraction(std::size_t at) const;
  std::size_t match_word(std::size_t at) const;
  std::size_t match_digits(std::size_t at) const;
  std::size_t match_symbols(std::size_t at) const;
  std::size_t match_space(std::size_t at) const;
  std::size_t match_space_to_newline(std::size_t at) const;
  std::uint32_t contraction_letter(std::size_t at) const;

  SplitRule rule_;
  const std::vector<Char>& chars_;
};

// The letter at `at`, folded to lower case where the pattern ignores case. U+017F, the long s, folds to s.
std::uint32_t Matcher::contraction_letter(std::size_t at) const {
  if (at >= chars_.size()) return 0;
  const std::uint32_t c = chars_[at].code_point;
  if (rule_ == SplitRule::kGpt2) return c;
  if (c == 0x17f) return 's';
  return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

// 's|'t|'re|'ve|'m|'ll|'d
std::size_t Matcher::match_contraction(std::size_t at) const {
  if (!is_char(at, '\'')) return at;
  const std::uint32_t first = contraction_letter(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const std::uint32_t second = contraction_letter(at + 2);
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return two ? at + 3 : at;
}

// [^\r\n\p{L}\p{N}]?\p{L}+
std::size_t Matcher::match_word(std::size_t at) const {
  const bool prefixed = !is(at, CharClass::kLetter) && !is(at, CharClass::kNumber) && !is_newline(at);
  const std::size_t begin = prefixed ? at + 1 : at;
  return is(begin, CharClass::kLetter) ? end_of_run(begin, CharClass::kLetter) : at;
}

// \p{N}{1,3} in Llama 3's pattern, \p{N} in Qwen 2's
std::size_t Matcher::match_digits(std::size_t at) const {
  const std::size_t limit = at + (rule_ == SplitRule::kLlama3 ? 3 : 1);
  while (at < limit && is(at, CharClass::kNumber)) ++at;
  return at;
}

//  ?[^\s\p{L}\p{N}]+[\r\n]*
std::size_t Matcher::match_symbols(std::size_t at) const {
  const std::size_t begin = is_char(at, ' ') ? at + 1 : at;
  if (!is(begin, CharClass::kOther)) return at;
  std::size_t end = end_of_run(begin, CharClass::kOther);
  while (is_newline(end)) ++end;
  return end;
}

// \s*[\r\n]+ : up to the last newline of the run of spaces
std::size_t Matcher::match_space_to_newline(std::size_t at) const {
  std::size_t end = end_of_run(at, CharClass::kSpace);
  while (end > at && !is_newline(end - 1)) --end;
  return end;
}

// \s+(?!\S)|\s+ : a run of spaces leaves its last one to the word behind it, if it has another
std::size_t Matcher::match_space(std::size_t at) const {
  const std::size_t end = end_of_run(at, CharClass::kSpace);
  return end == chars_.size() || end - at < 2 ? end : end - 1;
}

std::size_t Matcher::match_gpt2(std::size_t at) const {
  if (const std::size_t end = match_contraction(at); end != at) return end;
  const std::size_t begin = is_char(at, ' ') ? at + 1 : at;
  for (const CharClass kind : {CharClass::kLetter, CharClass::kNumber, CharClass::kOther}) {
    if (is(begin, kind)) return end_of_run(begin, kind);
  }
  return match_space(at);
}

std::size_t Matcher::match_llama3(std::size_t at) const {
  using Alternative = std::size_t (Matcher::*)(std::size_t) const;
  constexpr std::array<Alternative, 6> kAlternatives = {&Matcher::match_contraction,      &Matcher::match_word,
                                                        &Matcher::match_digits,           &Matcher::match_symbols,
                                                        &Matcher::match_space_to_newline, &Matcher::match_space};
  for (const Alternative alternative : kAlternatives) {
    if (const std::size_t end = (this->*alternative)(at); end != at) return end;
  }
  return at + 1;
}

}  // namespace

std::optional<SplitRule> split_rule_of(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return SplitRule::kGpt2;
  if (pattern == kLlama3Pattern) return SplitRule::kLlama3;
  if (pattern == kQwen2Pattern) return SplitRule::kQwen2;
  return std::nullopt;
}

void split(SplitRule rule, std::string_view text, const std::function<void(std::string_view)>& visit) {
  const std::vector<Char> chars = classify(text);
  const Matcher matcher(rule, chars);
  for (std::size_t at = 0; at < chars.size();) {
    const std::size_t next = matcher.match(at);
    const std::size_t end = next == chars.size() ? text.size() : chars[next].offset;
    visit(text.substr(chars[at].offset, end - chars[at].offset));
    at = next;
  }
}

}  // namespace llama
