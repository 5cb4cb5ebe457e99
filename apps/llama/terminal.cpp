#include "apps/llama/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace flywheel::llama {
namespace {

constexpr std::chrono::milliseconds kFrame{16};

constexpr const char* kClearBelow = "\033[J";  // from the cursor to the end of the screen
constexpr const char* kClearLine = "\r\033[K";

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Characters in valid UTF-8: bytes that do not continue one.
std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  return count;
}

}  // namespace

Terminal::Terminal()
    : text_is_shown_(isatty(STDOUT_FILENO) != 0), status_is_shown_(isatty(STDERR_FILENO) != 0) {}

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
/// to the end of the text. All by moves that still hold when the screen scrolls.
void Terminal::draw(bool with_status) {
  if (status_stands_) std::fputs(text_is_shown_ ? kClearBelow : kClearLine, stderr);
  std::fflush(stderr);
  std::fwrite(held_.data(), 1, held_.size(), stdout);
  std::fflush(stdout);
  follow(held_);
  held_.clear();
  status_stands_ = with_status && status_is_shown_;
  if (!status_stands_) return;
  if (!text_is_shown_) {
    std::fprintf(stderr, "\r%s", status().c_str());
    return;
  }
  std::fprintf(stderr, "\n%s\033[A\r", status().c_str());
  if (const std::size_t column = column_ % terminal_width()) std::fprintf(stderr, "\033[%zuC", column);
}

void Terminal::follow(std::string_view text) {
  const std::size_t line = text.rfind('\n');
  if (line == std::string_view::npos) {
    column_ += characters(text);
  } else {
    column_ = characters(text.substr(line + 1));
  }
}

std::string Terminal::status() const {
  const std::chrono::duration<double> time = Clock::now() - begin_;
  char text[96];
  std::snprintf(text, sizeof text, "[%u of %u tokens, %.0f tokens/s]", count_, expected_,
                count_ / time.count());
  return std::string(text).substr(0, terminal_width() - 1);
}

}  // namespace flywheel::llama
