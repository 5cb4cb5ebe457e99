// What the tests of apps/measure and apps/bench share.
#pragma once

#include <exception>
#include <initializer_list>
#include <string>

#include "apps/measure/measurement.hpp"

namespace measure {

/// The message of the exception that `action` throws; empty if it throws none.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

inline bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

inline Measurement constant(const std::string& name, double value) {
  return {.name = name, .unit = "us", .round = [value] { return Samples{value}; }};
}

}  // namespace measure
