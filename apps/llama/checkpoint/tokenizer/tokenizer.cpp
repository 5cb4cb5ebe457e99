#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"

#include <utility>

#include "apps/llama/checkpoint/mapped_file.hpp"
#include "apps/llama/checkpoint/tokenizer/tokenizer_file.hpp"

namespace llama {

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  return parse(read_text(file, "name the folder of a Hugging Face model that has a tokenizer.json"), file);
}

Tokenizer Tokenizer::parse(std::string_view json, const std::filesystem::path& file) {
  return Tokenizer(read_tokenizer(json, file));
}

std::vector<int> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids = parts_.prefix;
  const std::vector<int> plain = encode_plain(text);
  ids.insert(ids.end(), plain.begin(), plain.end());
  ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  return ids;
}

std::vector<int> Tokenizer::encode_plain(std::string_view text) const {
  std::vector<int> ids;
  parts_.added.split(
      text, [&](std::string_view section) { encode_section(section, ids); }, [&](int id) { ids.push_back(id); });
  return ids;
}

std::string Tokenizer::guarded(std::string_view text) const {
  std::string plain(text), all;
  std::erase(plain, kGuard);
  const auto add_id = [&](int id) {
    for (const char byte : bytes_of(id)) (all += byte) += is_special(id) ? std::string(1, kGuard) : std::string();
  };
  parts_.added.split(
      plain, [&](std::string_view section) { all += section; }, add_id);
  return all;
}

std::vector<int> Tokenizer::encode_guarded(std::string_view text) const {
  std::vector<int> ids;
  const auto encode_unguarded = [&](std::string section) {
    std::erase(section, kGuard);
    if (!section.empty()) encode_section(section, ids);
  };
  parts_.added.split(
      text, [&](std::string_view section) { encode_unguarded(std::string(section)); }, [&](int id) { ids.push_back(id); });
  return ids;
}

void Tokenizer::encode_section(std::string_view section, std::vector<int>& ids) const {
  if (parts_.add_prefix_space && !section.starts_with(' ')) {
    cut(" " + std::string(section), 0, ids);
  } else {
    cut(section, 0, ids);
  }
}

void Tokenizer::cut(std::string_view text, std::size_t rule, std::vector<int>& ids) const {
  if (rule == parts_.rules.size()) return encode_piece(text, ids);
  split(parts_.rules[rule], text, [&](std::string_view piece) { cut(piece, rule + 1, ids); });
}

void Tokenizer::encode_piece(std::string_view piece, std::vector<int>& ids) const {
  const std::optional<int> whole = parts_.ignore_merges ? parts_.vocabulary.find_piece(piece) : std::nullopt;
  if (whole) {
    ids.push_back(*whole);
  } else {
    parts_.merges.encode(piece, ids);
  }
}

std::string Tokenizer::decode(std::span<const int> ids) const {
  Utf8Stream stream;
  std::string text;
  for (const int id : ids) text += stream.push(bytes_of(id));
  return text + stream.finish();
}

std::string Tokenizer::decode_visible(std::span<const int> ids) const {
  Decoder decoder(*this);
  std::string text;
  for (const int id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

}  // namespace llama
