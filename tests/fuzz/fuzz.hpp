// What the harnesses share: the entry that a fuzzing engine calls, and the claims that make a finding when they fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

/// One execution. Returns 0 whatever the bytes are; any other end of it is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace flywheel::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

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
