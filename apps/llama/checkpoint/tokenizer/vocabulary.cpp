#include "apps/llama/checkpoint/tokenizer/vocabulary.hpp"

#include <algorithm>

#include "apps/llama/checkpoint/tokenizer/byte_alphabet.hpp"

namespace llama {
namespace {

template <class Ids>
std::optional<int> look_up(const Ids& ids, std::string_view bytes) {
  const auto found = ids.find(bytes);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

Vocabulary::Row& Vocabulary::row(int id) {
  size_ = std::max(size_, id + 1);
  return rows_[id];
}

bool Vocabulary::add(int id, std::string_view written) {
  Row& place = row(id);
  if (!place.bytes.empty()) return false;
  const std::optional<std::string> bytes = bytes_of_token(written);
  place.bytes = bytes.value_or(std::string(written));
  (bytes ? pieces_ : added_).emplace(place.bytes, id);
  return true;
}

bool Vocabulary::add_special(int id, std::string_view content, bool special) {
  Row& place = row(id);
  if (!place.bytes.empty() && place.bytes != content) return false;
  place = {std::string(content), special};
  added_.insert_or_assign(place.bytes, id);
  return true;
}

const std::string& Vocabulary::bytes_of(int id) const {
  static const std::string kNothing;
  const auto found = rows_.find(id);
  return found == rows_.end() ? kNothing : found->second.bytes;
}

bool Vocabulary::is_special(int id) const {
  const auto found = rows_.find(id);
  return found != rows_.end() && found->second.special;
}

std::optional<int> Vocabulary::find(std::string_view bytes) const {
  const std::optional<int> added = look_up(added_, bytes);
  return added ? added : find_piece(bytes);
}

std::optional<int> Vocabulary::find_piece(std::string_view bytes) const { return look_up(pieces_, bytes); }

}  // namespace llama
