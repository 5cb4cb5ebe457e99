// What comes of the texts of a call, while their tokens come.
#pragma once

#include "apps/llama/decode/request.hpp"

namespace llama {

class Tally {
 public:
  /// The call begins. All that it is given must outlive it.
  Tally(const std::vector<Request>& requests, const Config& config, const OnTextToken& on_token, const OnTextEnd& on_end);

  /// The next token of a text: tells those who asked for it. True if it is the last.
  bool add(std::size_t text, std::uint32_t token);
  void add_steps(std::uint32_t steps) { steps_ += steps; }
  std::vector<Outcome> outcomes() const;

 private:
  const std::vector<Request>& requests_;
  const std::vector<int>& ends_;
  const OnTextToken& on_token_;
  const OnTextEnd& on_end_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<Outcome> outcomes_;
  std::uint32_t steps_ = 0;
};

}  // namespace llama
