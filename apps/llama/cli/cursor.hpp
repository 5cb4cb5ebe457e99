// Where a terminal's cursor stands behind a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace llama {

/// Cells that a character takes on a terminal: 2 for those of Chinese and for emoji, none for an accent of its own.
std::size_t cells_of(std::uint32_t code_point);

class Cursor {
 public:
  /// Goes behind `text`, on a terminal with `width` cells a line. What is no UTF-8 takes a cell each.
  void follow(std::string_view text, std::size_t width);
  /// Cells to its left. All of the line: the next character goes to the next line, and no move leads back to here.
  std::size_t column() const { return column_; }

 private:
  void follow(std::uint32_t code_point, std::size_t width);

  std::size_t column_ = 0;
};

}  // namespace llama
