#include "apps/llama/checkpoint/tokenizer/added_tokens.hpp"

#include <algorithm>

namespace llama {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) {
    Table& table = token.normalized ? normalized_ : raw_;
    table[static_cast<unsigned char>(token.content.front())].push_back(token);
  }
  for (Table* table : {&raw_, &normalized_}) {
    for (auto& row : *table) {
      std::ranges::sort(row, std::greater<>(), [](const AddedToken& token) { return token.content.size(); });
    }
  }
}

const AddedToken* AddedTokens::match(const Table& table, std::string_view text) {
  for (const AddedToken& token : table[static_cast<unsigned char>(text.front())]) {
    if (text.starts_with(token.content)) return &token;
  }
  return nullptr;
}

void AddedTokens::split_by(const Table& table, std::string_view text, const std::function<void(std::string_view)>& visit_text,
                           const std::function<void(int)>& visit_id) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = match(table, text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    if (at > begin) visit_text(text.substr(begin, at - begin));
    visit_id(token->id);
    begin = at += token->content.size();
  }
  if (begin < text.size()) visit_text(text.substr(begin));
}

void AddedTokens::split(std::string_view text, const std::function<void(std::string_view)>& visit_text,
                        const std::function<void(int)>& visit_id) const {
  const auto visit_rest = [&](std::string_view rest) { split_by(normalized_, rest, visit_text, visit_id); };
  split_by(raw_, text, visit_rest, visit_id);
}

}  // namespace llama
