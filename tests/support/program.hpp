// A built program, run as a person would: through the shell, and its answer is read.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace flywheel::testing {

/// A program's exit code and what it printed, on the streams that the command leaves.
struct Answer {
  int code;
  std::string text;
};

/// `program`: from the build folder on. `redirections`: as the shell takes them, after `arguments`; what then goes to
/// stdout is the answer's text. `environment`: assignments in front of the program.
inline Answer ask(const std::string& program, const std::string& arguments, const std::string& redirections,
                  const std::string& environment = "") {
  const char* build = std::getenv("FLYWHEEL_BUILD_DIR");
  if (!build) throw std::runtime_error("run this test with ctest: it sets FLYWHEEL_BUILD_DIR");
  const std::string command = environment + " " + build + "/" + program + " " + arguments + " " + redirections;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start: " + command);
  Answer answer{0, {}};
  char part[256];
  while (std::fgets(part, sizeof part, pipe)) answer.text += part;
  answer.code = WEXITSTATUS(pclose(pipe));
  return answer;
}

}  // namespace flywheel::testing
