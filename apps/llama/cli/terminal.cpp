#include "apps/llama/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace llama {
namespace {

constexpr std::chrono::milliseconds kFrame{16};

constexpr const char* kClearBelow = "\033[J";  // from the cursor to the end of the screen
constexpr const char* kClearLine = "\r\033[K";

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Terminal::Terminal() : text_is_shown_(isatty(STDOUT_FILENO) != 0), status_is_shown_(isatty(STDERR_FILENO) != 0) {}

void Terminal::begin(std::string_view prompt, std::uint32_t expected) {
  expected_ = expected;
  begin_ = Clock::now();
  held_ += prompt;
  draw(false);
}

void Terminal::add(std::string_view text) {
  held_ += text;
  ++count_;
  if (Clock::now() - last_frame_ < kFrame) return;
  draw(true);
  last_frame_ = Clock::now();
}

void Terminal::end(std::string_view text) {
  held_ += text;
  if (!held_.empty() || status_stands_) draw(false);
}

/// The old status goes, the text comes, the new status stands on the line below it, and the cursor goes back
/// to the end of the text. All by moves that still hold when the screen scrolls. None leads to the end of a full
/// line: below that there is no status until the next line has begun.
void Terminal::draw(bool with_status) {
  if (status_stands_) std::fputs(text_is_shown_ ? kClearBelow : kClearLine, stderr);
  std::fflush(stderr);
  std::fwrite(held_.data(), 1, held_.size(), stdout);
  std::fflush(stdout);
  const std::size_t width = terminal_width();
  cursor_.follow(held_, width);
  held_.clear();
  const std::size_t column = cursor_.column();
  status_stands_ = with_status && status_is_shown_ && !(text_is_shown_ && column == width);
  if (!status_stands_) return;
  if (!text_is_shown_) {
    std::fprintf(stderr, "\r%s", status().c_str());
    return;
  }
  std::fprintf(stderr, "\n%s\033[A\r", status().c_str());
  if (column > 0) std::fprintf(stderr, "\033[%zuC", column);
}

std::string Terminal::status() const {
  const std::chrono::duration<double> time = Clock::now() - begin_;
  char text[96];
  std::snprintf(text, sizeof text, "[%u of %u tokens, %.0f tokens/s]", count_, expected_, count_ / time.count());
  return std::string(text).substr(0, terminal_width() - 1);
}

}  // namespace llama
