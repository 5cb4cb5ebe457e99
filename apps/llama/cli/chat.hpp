// `llama chat`: a conversation in the terminal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/llama/cli/session.hpp"
#include "apps/llama/decode/request.hpp"

namespace llama {

struct ChatRequest {
  std::string system{};                   // the first message; empty: none
  std::filesystem::path template_file{};  // in place of the model's template; empty: that
  std::vector<std::string> stops{};       // texts that end an answer, with "\n" as two characters; none: the user's next turn
  std::uint32_t tokens = 0;               // of an answer, at most; 0: 256
  Sampling sampling{};                    // of the first answer; each after it has the next seed
};

/// Reads messages from stdin, a line each, and writes an answer to each on stdout as it comes; a line on stderr says how long
/// that took. "/new" begins a new conversation, "/quit" or the end of the input ends. A message that the context has no room
/// for, or that the template refuses, is told on stderr and taken back. Throws ModelError for a model or template that is
/// missing or damaged, RequestError for settings that make no sense.
void chat(const Setup& setup, const ChatRequest& request);

}  // namespace llama
