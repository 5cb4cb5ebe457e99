// What the tests of the program `llama` share: it is run as a person would, and its answer is read.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "llama_support.hpp"
#include "support/program.hpp"

namespace llama {

namespace testing = flywheel::testing;

using testing::Answer;

/// The text is what came on stderr, or what `shown` makes of both streams.
inline Answer ask_program(const std::string& arguments, const std::string& shown = "2>&1 >/dev/null",
                          const std::string& environment = "") {
  return testing::ask("apps/llama/llama", arguments, shown, environment);
}

/// It answered with one line, of these words and without `never`, and exit code 2.
inline void check_refused(const std::string& arguments, std::initializer_list<std::string_view> words,
                          const std::string& never = "", const std::string& environment = "") {
  const Answer answer = ask_program(arguments, "2>&1 >/dev/null", environment);
  INFO(environment << " llama " << arguments << " -> " << answer.code << ": " << answer.text);
  CHECK(answer.code == 2);
  CHECK(mentions(answer.text, words));
  CHECK((never.empty() || answer.text.find(never) == std::string::npos));
  CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') == 1);
}

}  // namespace llama
