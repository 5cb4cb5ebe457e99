// What the tests of the program `llama` share: it is run as a person would, and its answer is read.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "llama_support.hpp"

namespace flywheel::llama {

/// The program's exit code and what it printed: on stderr, or on what `shown` makes of it.
struct Answer {
  int code;
  std::string text;
};

/// `environment`: assignments in front of the program, as a shell takes them.
inline Answer ask_program(const std::string& arguments, const std::string& shown = "2>&1 >/dev/null",
                          const std::string& environment = "") {
  const char* build = std::getenv("FLYWHEEL_BUILD_DIR");
  if (!build) throw std::runtime_error("run this test with ctest: it sets FLYWHEEL_BUILD_DIR");
  const std::string command = environment + " " + build + "/apps/llama/llama " + arguments + " " + shown;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start: " + command);
  Answer answer{0, {}};
  char part[256];
  while (std::fgets(part, sizeof part, pipe)) answer.text += part;
  answer.code = WEXITSTATUS(pclose(pipe));
  return answer;
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

}  // namespace flywheel::llama
