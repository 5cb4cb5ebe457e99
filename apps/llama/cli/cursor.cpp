#include "apps/llama/cli/cursor.hpp"

#include <clocale>
#include <cwchar>

#include <algorithm>

#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama {

/// As the C library has it, whatever the user's locale is. A character that it does not know takes one cell.
std::size_t cells_of(std::uint32_t code_point) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (code_point < ' ') return 0;
  if (code_point < 0x7f || !utf8) return 1;
  const locale_t before = uselocale(utf8);
  const int cells = wcwidth(static_cast<wchar_t>(code_point));
  uselocale(before);
  if (cells >= 0) return static_cast<std::size_t>(cells);
  return code_point < 0xa0 ? 0 : 1;  // control characters up to there
}

void Cursor::follow(std::string_view text, std::size_t width) {
  column_ = std::min(column_, width);  // the terminal may have become narrower
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    follow(step.code_point, width);
    text.remove_prefix(step.length);
  }
}

void Cursor::follow(std::uint32_t code_point, std::size_t width) {
  constexpr std::size_t kTab = 8;
  if (code_point == '\n' || code_point == '\r') {
    column_ = 0;
  } else if (code_point == '\t') {
    column_ = std::min((column_ / kTab + 1) * kTab, width - 1);
  } else {
    const std::size_t cells = cells_of(code_point);
    column_ = column_ + cells > width ? cells : column_ + cells;
  }
}

}  // namespace llama
