// What the harnesses share: the entry that they define, and the claims that make a finding when they fail.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace flywheel::fuzz {

/// One execution, which every harness defines. It returns, whatever the input is; any other end of it is a finding.
void run(std::string_view input);

/// What stands before the first `mark`, and what stands behind it: both empty where there is nothing.
inline std::pair<std::string_view, std::string_view> cut_at(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

/// Ends the process, which the engine reports together with the input, unless `claim` holds.
inline void expect(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace flywheel::fuzz
