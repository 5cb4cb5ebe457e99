// What tests say about errors and about time.
#pragma once

#include <cctype>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace flywheel::testing {

/// The message of the E that `action` throws; empty if it throws nothing. Other exceptions pass through.
template <class E, class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

/// The text with each run of blanks and line ends as one blank: Catch2 breaks lines where it likes.
inline std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

/// Every part must be in the message.
inline void check_says(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = on_one_line(text);
  for (const std::string& part : parts) {
    INFO("the message: " << message);
    INFO("must say: " << part);
    CHECK(message.find(part) != std::string::npos);
  }
}

/// Waits until `condition` holds, but no longer than the limit. True if it holds.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace flywheel::testing
