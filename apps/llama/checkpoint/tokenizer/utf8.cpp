#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

#include <utility>

namespace llama {
namespace {

constexpr std::string_view kReplacementText = "\xef\xbf\xbd";

// Well-formed sequences by their first byte (the Unicode standard, table 3-7): length, and the range of the
// second byte, which shuts out overlong forms, surrogates and what lies above U+10FFFF.
struct Lead {
  std::size_t length;
  unsigned char low;
  unsigned char high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Step read_utf8(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  Lead lead = lead_of(first);
  if (lead.length == 0) return {};
  std::uint32_t code_point = lead.length == 1 ? first : first & (0x7fu >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Step::Kind::kIncomplete, kReplacementCharacter, i};
    const auto next = static_cast<unsigned char>(bytes[i]);
    if (next < lead.low || next > lead.high) return {Utf8Step::Kind::kInvalid, kReplacementCharacter, i};
    code_point = code_point << 6 | (next & 0x3fu);
    lead.low = 0x80;
    lead.high = 0xbf;
  }
  return {Utf8Step::Kind::kCharacter, code_point, lead.length};
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_.append(bytes);
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Step step = read_utf8(rest);
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    text += step.kind == Utf8Step::Kind::kCharacter ? rest.substr(0, step.length) : kReplacementText;
    rest.remove_prefix(step.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return text;
}

std::string Utf8Stream::finish() { return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacementText); }

}  // namespace llama
