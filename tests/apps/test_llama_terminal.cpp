// Showing a text while it is written: whatever the status line does below it, the text stays as it is.
#include "apps/llama/cli/terminal.hpp"

#include "apps/llama/cli/cursor.hpp"
#include "catch.hpp"
#include "llama_screen.hpp"

namespace llama {
namespace {

using Lines = std::vector<std::string>;

/// Two pieces of a text, with a status below the first.
Lines shown(std::size_t width, const std::string& first, const std::string& rest) {
  return shown_on_terminal(width, [&] {
    Terminal terminal;
    terminal.begin("", 9);
    terminal.add(first);
    terminal.end(rest + "\n");
  });
}

std::size_t column_after(const std::string& text, std::size_t width) {
  Cursor cursor;
  cursor.follow(text, width);
  return cursor.column();
}

}  // namespace

TEST_CASE("terminal: a text goes on where it was before the status came") {
  CHECK(shown(40, "To be, or", " not to be") == Lines{"To be, or not to be", ""});
  CHECK(shown(40, "To be,\n", "or not") == Lines{"To be,", "or not", ""});
  CHECK(shown(6, "To be, or", " not") == Lines{"To be,", " or no", "t", ""});
}

TEST_CASE("terminal: a full line stays") {
  CHECK(shown(6, "To be,", "or not") == Lines{"To be,", "or not", ""});
  CHECK(shown(6, "To be,or not", " to") == Lines{"To be,", "or not", " to", ""});
}

TEST_CASE("terminal: a text goes on behind wide characters and accents") {
  CHECK(shown(40, "中文", "字") == Lines{"中文字", ""});
  CHECK(shown(5, "中文", "字") == Lines{"中文", "字", ""});
  CHECK(shown(5, "中文字", "a") == Lines{"中文", "字a", ""});
}

TEST_CASE("terminal: where the cursor stands") {
  CHECK(column_after("", 80) == 0);
  CHECK(column_after("abc", 80) == 3);
  CHECK(column_after("abc\nde", 80) == 2);
  CHECK(column_after("abcd", 4) == 4);
  CHECK(column_after("abcde", 4) == 1);
  CHECK(column_after("a\tb", 80) == 9);
  CHECK(column_after("e\u0301", 80) == 1);
  CHECK(column_after("\U0001f600", 80) == 2);
  CHECK(column_after("中", 80) == 2);
  CHECK(column_after("\xff", 80) == 1);
}

TEST_CASE("terminal: a narrower terminal") {
  Cursor cursor;
  cursor.follow("abcdef", 80);
  cursor.follow("g", 4);
  CHECK(cursor.column() == 1);
}

}  // namespace llama
