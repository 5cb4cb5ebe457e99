#include "apps/llama/checkpoint/tokenizer/byte_alphabet.hpp"

#include <array>

#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama {
namespace {

constexpr std::size_t kAlphabetEnd = 0x100 + 68;  // behind the last code point in use

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The byte of each code point, -1 where there is none.
constexpr std::array<int, kAlphabetEnd> make_table() {
  std::array<int, kAlphabetEnd> table{};
  for (int& entry : table) entry = -1;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 0x100; ++byte) {
    table[stands_for_itself(byte) ? byte : next++] = static_cast<int>(byte);
  }
  return table;
}

constexpr std::array<int, kAlphabetEnd> kByteOf = make_table();

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view written) {
  std::string bytes;
  while (!written.empty()) {
    const Utf8Step step = read_utf8(written);
    if (step.code_point >= kAlphabetEnd || kByteOf[step.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOf[step.code_point]);
    written.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace llama
