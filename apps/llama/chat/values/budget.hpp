// What a rendering may take. A template comes with a model from anywhere: whatever it says, it ends, and its memory is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/llama/chat/values/problem.hpp"

namespace llama::jinja {

/// Steps that are left: one for each node that is evaluated, 40 for a turn of a loop, four for each element of a new list, one
/// for each 16 bytes of new text. So no rendering makes more than 16 bytes of text or a quarter of an element for each step.
class Budget {
 public:
  explicit Budget(std::uint64_t steps) : left_(steps) {}

  /// Throws Problem when nothing is left.
  void spend(std::uint64_t steps) {
    if (steps > left_) {
      left_ = 0;
      throw Problem("takes more steps than a rendering may: it loops for too long or makes too much text",
                    "shorten the conversation, or name another template with --template");
    }
    left_ -= steps;
  }
  void spend_text(std::size_t bytes) { spend(bytes / 16 + 1); }
  /// For finding `part` bytes in `whole`, of which a search may compare all parts.
  void spend_search(std::size_t whole, std::size_t part) { spend((whole / 16 + 1) * (part / 64 + 1)); }

 private:
  std::uint64_t left_;
};

/// Text that grows within a budget.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(&budget) {}

  TextBuilder& add(std::string_view text) {
    budget_->spend_text(text.size());
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  Budget* budget_;
  std::string text_;
};

}  // namespace llama::jinja
