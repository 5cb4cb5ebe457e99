// Runs one test case of this program in a process of its own, under a time limit.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace flywheel::testing {

struct ChildResult {
  int status = -1;  // what it exited with; 128 + the signal that ended it
  bool timed_out = false;
  std::string output;  // both streams
  double seconds = 0;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

namespace detail {
[[noreturn]] inline void become(const std::string& test_case, const Environment& environment, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  execl("/proc/self/exe", "child", test_case.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

/// Reads until the child closes its end, it has said `text` unless that is empty, or the time is up. False then.
inline bool read_until(int from, const std::string& text, std::chrono::steady_clock::time_point end, std::string& to) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{from, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
    char part[4096];
    const ssize_t count = read(from, part, sizeof(part));
    if (count <= 0) return true;
    to.append(part, static_cast<std::size_t>(count));
    if (!text.empty() && to.find(text) != std::string::npos) return true;
  }
}
}  // namespace detail

/// The test case is hidden (tag [.child]) and named in full; a fresh process runs it, because a fork of one
/// that has used CUDA or started threads can do neither. If it says `last_words`, it is killed as soon as it has.
inline ChildResult run_child(const std::string& test_case, std::chrono::seconds limit, const Environment& environment = {},
                             const std::string& last_words = "") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) detail::become(test_case, environment, ends[1]);
  close(ends[1]);
  ChildResult result;
  result.timed_out = !detail::read_until(ends[0], last_words, begin + limit, result.output);
  close(ends[0]);
  if (result.timed_out || !last_words.empty()) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// The child must have ended by itself with this status.
inline void check_child(const ChildResult& result, int status = 0) {
  INFO(result.output);
  CHECK_FALSE(result.timed_out);
  CHECK(result.status == status);
}

}  // namespace flywheel::testing
