#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/pretokenizer.hpp"
#include "apps/llama/checkpoint/tokenizer/unicode.hpp"
#include "apps/llama/checkpoint/tokenizer/unicode_table.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Pieces = std::vector<std::string>;

namespace {

Pieces pieces_of(SplitRule rule, const std::string& text) {
  Pieces pieces;
  split(rule, text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces gpt2(const std::string& text) { return pieces_of(SplitRule::kGpt2, text); }
Pieces llama3(const std::string& text) { return pieces_of(SplitRule::kLlama3, text); }
Pieces qwen2(const std::string& text) { return pieces_of(SplitRule::kQwen2, text); }

}  // namespace

TEST_CASE("words keep one space before them") {
  for (const auto& rule : {gpt2, llama3, qwen2}) {
    CHECK(rule("to be  or") == Pieces{"to", " be", " ", " or"});
    CHECK(rule("end   ") == Pieces{"end", "   "});
    CHECK(rule("").empty());
  }
}

TEST_CASE("contractions are pieces; only GPT-2's rule minds their case") {
  CHECK(gpt2("I'll WE'LL") == Pieces{"I", "'ll", " WE", "'", "LL"});
  CHECK(llama3("I'll WE'LL") == Pieces{"I", "'ll", " WE", "'LL"});
  CHECK(qwen2("'\u017fo") == Pieces{"'\u017f", "o"});
  CHECK(gpt2("o'er") == Pieces{"o", "'", "er"});
  CHECK(llama3("o'er") == Pieces{"o", "'er"});
}

TEST_CASE("digits come whole, in threes, or alone") {
  CHECK(gpt2(" 12345") == Pieces{" 12345"});
  CHECK(llama3(" 12345") == Pieces{" ", "123", "45"});
  CHECK(qwen2(" 12345") == Pieces{" ", "1", "2", "3", "4", "5"});
}

TEST_CASE("newlines stay with what comes before them in the later rules") {
  CHECK(gpt2("a.\n\nb") == Pieces{"a", ".", "\n", "\n", "b"});
  CHECK(llama3("a.\n\nb") == Pieces{"a", ".\n\n", "b"});
  CHECK(llama3("a \n \n  b") == Pieces{"a", " \n \n", " ", " b"});
  CHECK(llama3("\tx") == Pieces{"\tx"});
  CHECK(gpt2("\tx") == Pieces{"\t", "x"});
}

TEST_CASE("classes reach beyond ASCII") {
  CHECK(gpt2("né 中文 ½٣") == Pieces{"né", " 中文", " ½٣"});
  CHECK(gpt2("a\u00a0b") == Pieces{"a", "\u00a0", "b"});
  CHECK(class_of('a') == CharClass::kLetter);
  CHECK(class_of(0x2a6d6) == CharClass::kLetter);
  CHECK(class_of(0x2167) == CharClass::kNumber);
  CHECK(class_of(0x3000) == CharClass::kSpace);
  CHECK(class_of(0x200b) == CharClass::kOther);
  CHECK(class_of(0x10ffff) == CharClass::kOther);
}

TEST_CASE("the tables are sorted and their ranges apart") {
  const auto sound = [](const auto& table) {
    return std::ranges::all_of(table, [](const CodeRange& range) { return range.first <= range.last; }) &&
           std::ranges::adjacent_find(table, [](const CodeRange& a, const CodeRange& b) { return a.last >= b.first; }) ==
               table.end();
  };
  CHECK(sound(kLetters));
  CHECK(sound(kNumbers));
  CHECK(sound(kSpaces));
}

TEST_CASE("patterns are known character for character") {
  CHECK(split_rule_of(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)") == SplitRule::kGpt2);
  CHECK_FALSE(split_rule_of(R"(\s+)").has_value());
  CHECK_FALSE(split_rule_of("").has_value());
}

TEST_CASE("the pieces of any bytes are those bytes") {
  for (const SplitRule rule : {SplitRule::kGpt2, SplitRule::kLlama3, SplitRule::kQwen2}) {
    CHECK(rc::check([rule](const std::string& text) {
      std::string joined;
      for (const std::string& piece : pieces_of(rule, text)) {
        RC_ASSERT(!piece.empty());
        joined += piece;
      }
      RC_ASSERT(joined == text);
    }));
  }
}
