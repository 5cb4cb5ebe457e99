// An answer while it is written: it ends where a stop text begins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llama {

/// What may be the beginning of a stop text is held back until it is known.
class AnswerText {
 public:
  explicit AnswerText(std::vector<std::string> stops);  // empty ones are none

  /// Gives what can be shown, and nothing more once a stop text has come.
  std::string push(std::string_view piece);
  std::string finish();  // what was held back

  bool has_stopped() const { return has_stopped_; }
  const std::string& text() const { return text_; }  // all that was given

 private:
  std::string give(std::size_t size);

  std::vector<std::string> stops_;
  std::string held_, text_;
  bool has_stopped_ = false;
};

}  // namespace llama
