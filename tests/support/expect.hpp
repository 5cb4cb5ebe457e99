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

/// Catch2 breaks the lines of a message where it likes, also after "::".
inline std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return text;
}

/// Every part must be in the message, line breaks aside.
inline void check_says(const std::string& message, const std::vector<std::string>& parts) {
  const std::string squeezed = without_blanks(message);
  for (const std::string& part : parts) {
    INFO("the message: " << message);
    INFO("must say: " << part);
    CHECK(squeezed.find(without_blanks(part)) != std::string::npos);
  }
}

/// Waits until `condition` holds, but no longer than the limit. True if it holds.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace flywheel::testing
