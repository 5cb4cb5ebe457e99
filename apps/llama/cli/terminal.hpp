// Showing a text while it is written: the text on stdout, how it goes on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/llama/cli/cursor.hpp"

namespace llama {

/// The text is written as it comes, at most 60 times a second. Where stderr is a terminal a line there says
/// how many tokens there are and how fast they come; it moves along below the text and is gone in the end.
class Terminal {
 public:
  Terminal();
  ~Terminal() { end(""); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void begin(std::string_view prompt, std::uint32_t expected);  // `expected` tokens, at most
  void add(std::string_view text);                              // of one token
  void end(std::string_view text);                              // what is left

 private:
  using Clock = std::chrono::steady_clock;

  void draw(bool with_status);
  std::string status() const;

  bool text_is_shown_;    // stdout is a terminal
  bool status_is_shown_;  // stderr is a terminal
  bool status_stands_ = false;
  std::uint32_t expected_ = 0;
  std::uint32_t count_ = 0;
  Cursor cursor_;     // behind the text
  std::string held_;  // not written yet
  Clock::time_point begin_{};
  Clock::time_point last_frame_{};
};

}  // namespace llama
