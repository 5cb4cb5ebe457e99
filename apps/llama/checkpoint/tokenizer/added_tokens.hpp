#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace llama {

// A token that is found in a text as it is, before any cutting and merging: "<|endoftext|>".
struct AddedToken {
  std::string content;  // not empty
  int id = 0;
  bool special = false;     // a mark for the model, left out when a text is shown
  bool normalized = false;  // looked for only in what the others leave
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  // Cuts `text` at its added tokens, leftmost first and of those the longest, and visits what lies between
  // them (never empty) and the tokens' ids, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& visit_text,
             const std::function<void(int)>& visit_id) const;

 private:
  // Tokens by their first byte, longest first.
  using Table = std::array<std::vector<AddedToken>, 256>;
  static const AddedToken* match(const Table& table, std::string_view text);
  static void split_by(const Table& table, std::string_view text, const std::function<void(std::string_view)>& visit_text,
                       const std::function<void(int)>& visit_id);

  Table raw_;
  Table normalized_;
};

}  // namespace llama
