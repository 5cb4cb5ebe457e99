#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace llama {

// Which bytes each token stands for, and back.
class Vocabulary {
 public:
  // Both return false when the id belongs to another token already. `id` must not be negative.
  bool add(int id, std::string_view written);                        // as spelled in the file, in the byte alphabet
  bool add_special(int id, std::string_view content, bool special);  // as it stands in a text

  const std::string& bytes_of(int id) const;  // empty for an id without a token
  bool is_special(int id) const;
  int size() const { return size_; }  // the largest id, plus one

  std::optional<int> find(std::string_view bytes) const;        // any token
  std::optional<int> find_piece(std::string_view bytes) const;  // one that merges could make

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Ids = std::unordered_map<std::string, int, Hash, std::equal_to<>>;
  struct Row {
    std::string bytes;
    bool special = false;
  };
  Row& row(int id);

  std::unordered_map<int, Row> rows_;  // ids may have gaps of any width
  int size_ = 0;
  Ids pieces_;
  Ids added_;
};

}  // namespace llama
