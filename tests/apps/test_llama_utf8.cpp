#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/byte_alphabet.hpp"
#include "apps/llama/checkpoint/tokenizer/utf8.hpp"
#include "tests/catch.hpp"

using namespace llama;

namespace {

using Kind = Utf8Step::Kind;

std::string utf8_of(std::uint32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 63)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

std::string all_at_once(const std::string& bytes) {
  Utf8Stream stream;
  const std::string text = stream.push(bytes);
  return text + stream.finish();
}

}  // namespace

TEST_CASE("every character is read, and its beginnings are incomplete") {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    const std::string bytes = utf8_of(c);
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    const Utf8Step step = read_utf8(bytes);
    bool good = surrogate ? step.kind == Kind::kInvalid
                          : step.kind == Kind::kCharacter && step.code_point == c && step.length == bytes.size();
    for (std::size_t size = 1; size < bytes.size() && !surrogate; ++size) {
      const Utf8Step part = read_utf8(bytes.substr(0, size));
      good = good && part.kind == Kind::kIncomplete && part.length == size;
    }
    if (!good) FAIL("code point " << c);
  }
}

TEST_CASE("what is no UTF-8 becomes one U+FFFD for each maximal subpart") {
  CHECK(all_at_once("a\xff"
                    "b") == "a\ufffdb");
  CHECK(all_at_once("\xc0\xaf") == "\ufffd\ufffd");
  CHECK(all_at_once("\xe0\x80\x80") == "\ufffd\ufffd\ufffd");
  CHECK(all_at_once("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");
  CHECK(all_at_once("\xf0\x9f\x98"
                    "a") == "\ufffda");
  CHECK(all_at_once("\xf4\x90\x80\x80") == "\ufffd\ufffd\ufffd\ufffd");
  CHECK(all_at_once("\xe4\xb8") == "\ufffd");
}

TEST_CASE("pieces of any size give what the whole gives") {
  CHECK(rc::check([] {
    std::string bytes = *rc::gen::arbitrary<std::string>();
    bytes += utf8_of(*rc::gen::inRange<std::uint32_t>(0xe000, 0x110000)) + *rc::gen::arbitrary<std::string>();
    const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
    Utf8Stream stream;
    std::string text = stream.push(std::string_view(bytes).substr(0, cut));
    for (const char c : bytes.substr(cut)) text += stream.push(std::string_view(&c, 1));
    RC_ASSERT(text + stream.finish() == all_at_once(bytes));
  }));
}

TEST_CASE("the byte alphabet writes every byte, and only bytes") {
  std::vector<bool> seen(256);
  for (std::uint32_t c = 0; c < 0x300; ++c) {
    const auto bytes = bytes_of_token(utf8_of(c));
    if (!bytes) continue;
    REQUIRE(bytes->size() == 1);
    const auto byte = static_cast<unsigned char>(bytes->front());
    CHECK_FALSE(seen[byte]);
    seen[byte] = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == 256);
  CHECK(bytes_of_token("\u0120the") == " the");
  CHECK(bytes_of_token("\u010a") == "\n");
  CHECK_FALSE(bytes_of_token("a b").has_value());
}
