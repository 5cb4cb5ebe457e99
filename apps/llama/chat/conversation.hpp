// A conversation as a model reads it: by its chat template, as text and as tokens.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/llama/chat/template.hpp"
#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"

namespace llama {

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

/// How a model's conversations are written: its template, and the special tokens that the template may name.
class ChatFormat {
 public:
  /// Of the model in `folder`: chat_template.jinja, or "chat_template" of tokenizer_config.json, of a list the one named
  /// "default"; or the file `named`, if it is not empty. Throws ModelError where there is none, and for one that is damaged.
  static ChatFormat load(const std::filesystem::path& folder, const std::filesystem::path& named = {});

  /// Up to where an answer begins. Throws as ChatTemplate::render().
  std::string text(const std::vector<Message>& messages, std::time_t now) const;

  /// The same as tokens: special tokens are those of the template alone, whatever the messages say. The tokenizer's own prefix
  /// does not stand in front, as templates write it themselves.
  std::vector<std::uint32_t> tokens(const Tokenizer& tokenizer, const std::vector<Message>& messages, std::time_t now) const;

  /// What stands between an answer and the next message of the user, where that is text: a model that has no token for the end
  /// of an answer goes on with it. Empty where special tokens stand there, or nothing that can be told from an answer.
  std::string next_turn(const Tokenizer& tokenizer, std::time_t now) const;

 private:
  ChatFormat(ChatTemplate chat_template, jinja::Names special)
      : template_(std::move(chat_template)),
        special_(std::move(special)) {}
  std::string render(const std::vector<Message>& messages, std::time_t now, bool begins_answer) const;

  ChatTemplate template_;
  jinja::Names special_;
};

}  // namespace llama
