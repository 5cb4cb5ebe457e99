// tokenizer.json, and a text behind a zero byte. Byte 1 in the JSON stands for the 256 tokens of single bytes, without which no
// file is accepted: so inputs stay small. Whatever the file, it is refused with a ModelError, or texts come back from their
// ids.
#include <algorithm>
#include <string>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

namespace {

constexpr std::size_t kLongestText = 256;

std::string utf8_of(unsigned code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xc0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3f))};
}

/// "!":0,"\"":1, and so on: GPT-2's alphabet in the order of its code points.
std::string byte_tokens() {
  std::string entries;
  int id = 0;
  for (unsigned code = '!'; code < 0x144; ++code) {
    if ((code > '~' && code < 0xa1) || code == 0xad) continue;
    const std::string escape = code == '"' || code == '\\' ? "\\" : "";
    entries += (id == 0 ? "\"" : ",\"") + escape + utf8_of(code) + "\":" + std::to_string(id);
    ++id;
  }
  return entries;
}

std::string with_bytes(std::string_view written, std::string_view entries) {
  const auto [front, back] = flywheel::fuzz::cut_at(written, '\1');
  if (front.size() == written.size()) return std::string(written);
  return std::string(front).append(entries).append(back);
}

/// 256 tokens cost more than all else. So most files that are refused anyway are refused with one of them.
bool is_refused_anyway(std::string_view written) {
  try {
    Tokenizer::parse(with_bytes(written, R"("!":0)"), "tokenizer.json");
    return false;
  } catch (const ModelError& error) {
    const bool lacks_token = error.problem().find("lacks") != std::string::npos;
    return !lacks_token;
  }
}

std::string expanded(std::string_view written) {
  static const std::string kByteTokens = byte_tokens();
  return with_bytes(written, kByteTokens);
}

/// Spaces may be put in front of a text, and of each section between added tokens.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  std::string bytes, streamed;
  Decoder decoder(tokenizer);
  const std::vector<int> ids = tokenizer.encode_plain(text);
  for (const int id : ids) {
    expect(id >= 0 && id < tokenizer.size(), "an id is a token's");
    bytes += tokenizer.bytes_of(id);
    streamed += decoder.push(id);
  }
  expect(without_spaces(bytes) == without_spaces(std::string(text)), "the bytes of a text come back");
  expect(streamed + decoder.finish() == tokenizer.decode_visible(ids), "one id at a time gives the same text");
  const std::vector<int> all = tokenizer.encode(text);
  expect(all.size() >= ids.size(), "prefix and suffix only add");
  tokenizer.decode(all);
}

void check_ids(const Tokenizer& tokenizer) {
  for (const int id : {-1, 0, 255, 256, tokenizer.size() - 1, tokenizer.size(), 1 << 30}) {
    tokenizer.is_special(id);
    tokenizer.id_of(tokenizer.bytes_of(id));
  }
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  const auto [json, text] = flywheel::fuzz::cut_at(input, '\0');
  if (is_refused_anyway(json)) return;
  try {
    const Tokenizer tokenizer = Tokenizer::parse(expanded(json), "tokenizer.json");
    check_ids(tokenizer);
    check_text(tokenizer, text.substr(0, kLongestText));
    check_text(tokenizer, "It's  2024,\r\n caf\xc3\xa9 <a>");
  } catch (const ModelError&) {}
}
