#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace llama {

// A value inside a JSON file, together with the way to it: "rope_parameters.rope_theta". Every getter checks
// the type and throws a ModelError that names the file, the key and what was expected there. Copies are cheap
// and share the document. (The JSON library stays in the .cpp.)
class JsonNode {
 public:
  // The root of `text`; `file` is for messages. Throws ModelError when the text is no JSON, names a key of an
  // object twice, is nested deeper than 64 levels, or its root is no object.
  static JsonNode parse(std::string_view text, const std::filesystem::path& file);

  JsonNode at(std::string_view key) const;                   // throws when absent or null
  std::optional<JsonNode> find(std::string_view key) const;  // empty when absent or null
  bool has(std::string_view key) const;                      // null counts
  bool is_object() const;
  bool is_array() const;
  bool is_text() const;

  // An integer in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  double number() const;  // finite
  bool flag() const;
  const std::string& text() const;

  void each_member(const std::function<void(const std::string& key, const JsonNode&)>& visit) const;
  void each_element(const std::function<void(const JsonNode&)>& visit) const;

  // For checks of the reader's own: "<key> <problem>".
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const;

 private:
  struct Document;
  JsonNode(std::shared_ptr<const Document> document, const void* value, std::string path)
      : document_(std::move(document)),
        value_(value),
        path_(std::move(path)) {}
  JsonNode child(const void* value, std::string_view key) const;

  std::shared_ptr<const Document> document_;
  const void* value_;  // an nlohmann::json inside *document_
  std::string path_;
};

}  // namespace llama
