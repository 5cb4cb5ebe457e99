// What a terminal shows of what a program writes to it: a pseudo-terminal, and as much of one's screen as it takes.
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama {

/// As xterm does it: a character in a line's last cell leaves the cursor there, and the next one goes to the next line.
class Screen {
 public:
  explicit Screen(std::size_t width) : width_(width) {}

  void write(std::string_view bytes) {
    while (!bytes.empty()) bytes.remove_prefix(bytes.starts_with("\033[") ? control(bytes) : character(bytes));
  }
  /// Without the spaces at their ends.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const Line& line : lines_) {
      std::string text;
      for (const std::string& cell : line) text += cell;
      all.push_back(text.erase(text.find_last_not_of(' ') + 1));
    }
    return all;
  }

 private:
  using Line = std::vector<std::string>;

  Line& line() {
    while (lines_.size() <= row_) lines_.emplace_back(width_, " ");
    return lines_[row_];
  }
  std::size_t character(std::string_view bytes) {
    const Utf8Step step = read_utf8(bytes);
    if (step.code_point == '\n') ++row_, line();
    else if (step.code_point == '\r') column_ = 0;
    else put(std::string(bytes.substr(0, step.length)), step.code_point < 0x2e80 ? 1 : 2);
    return step.length;
  }
  void put(const std::string& text, std::size_t cells) {
    if (column_ + cells > width_) ++row_, column_ = 0;
    line()[column_] = text;
    if (cells == 2) line()[column_ + 1] = "";
    column_ += cells;
  }
  std::size_t control(std::string_view bytes) {
    const std::size_t end = bytes.find_first_not_of("0123456789", 2);
    const std::size_t at = column_ < width_ ? column_ : width_ - 1;
    if (bytes[end] == 'A') --row_, column_ = at;
    if (bytes[end] == 'C') column_ = std::min(at + std::stoul(std::string(bytes.substr(2))), width_ - 1);
    if (bytes[end] == 'J' || bytes[end] == 'K') std::fill(line().begin() + static_cast<std::ptrdiff_t>(at), line().end(), " ");
    if (bytes[end] == 'J') lines_.resize(row_ + 1);
    return end + 1;
  }

  std::size_t width_, row_ = 0, column_ = 0;
  std::vector<Line> lines_;
};

/// What stands on a terminal of `width` cells a line after `action`, which writes to it in a process of its own.
inline std::vector<std::string> shown_on_terminal(std::size_t width, const std::function<void()>& action) {
  const winsize size{50, static_cast<unsigned short>(width), 0, 0};
  int terminal = -1;
  std::fflush(stdout);  // what others have said so far is not of the child
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("no pseudo-terminal");
  if (child == 0) {
    action();
    std::fflush(stdout);
    _exit(0);
  }
  Screen screen(width);
  std::string all;
  char part[256];
  for (ssize_t n; (n = read(terminal, part, sizeof part)) > 0;) all.append(part, static_cast<std::size_t>(n));
  close(terminal);
  waitpid(child, nullptr, 0);
  screen.write(all);
  return screen.lines();
}

}  // namespace llama
