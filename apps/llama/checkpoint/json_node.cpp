#include "apps/llama/checkpoint/json_node.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "apps/llama/checkpoint/error.hpp"

namespace llama {
namespace {

using Json = nlohmann::json;

const Json& json(const void* value) { return *static_cast<const Json*>(value); }

constexpr const char* kDamaged = "the file is damaged or was edited by hand: fetch it again from where the model came";

// Readers call themselves for what is nested. Models' files have 10 levels or fewer.
constexpr int kMostLevels = 64;

// Watches the file go by while the JSON library parses it, which needs no stack for what is nested. Refuses two
// equal keys, of which the library keeps the last: two tensors or tokens of one name are a fault. There is one set
// of keys for each object that is open.
class Watch {
 public:
  explicit Watch(const std::filesystem::path& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMostLevels) {
      throw ModelError(file_, "its JSON is nested deeper than " + std::to_string(kMostLevels) + " levels", kDamaged);
    }
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(value.get<std::string>()).second) {
      throw ModelError(file_, "the key \"" + value.get<std::string>() + "\" stands twice in one object", kDamaged);
    }
    return true;
  }

 private:
  const std::filesystem::path& file_;
  std::vector<std::set<std::string>> open_;
};

}  // namespace

struct JsonNode::Document {
  std::filesystem::path file;
  Json root;
};

JsonNode JsonNode::parse(std::string_view text, const std::filesystem::path& file) {
  auto document = std::make_shared<Document>();
  document->file = file;
  try {
    document->root = Json::parse(text.begin(), text.end(), Watch(file));
  } catch (const Json::exception& error) {
    throw ModelError(file, std::string("is no valid JSON: ") + error.what(), kDamaged);
  }
  if (!document->root.is_object()) throw ModelError(file, "its JSON is no object", kDamaged);
  const void* root = &document->root;
  return JsonNode(std::move(document), root, "");
}

JsonNode JsonNode::child(const void* value, std::string_view key) const {
  return JsonNode(document_, value, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!is_object()) fail("should be an object", kDamaged);
  const auto found = json(value_).find(std::string(key));
  if (found == json(value_).end() || found->is_null()) return std::nullopt;
  return child(&*found, key);
}

bool JsonNode::has(std::string_view key) const {
  if (!is_object()) fail("should be an object", kDamaged);
  return json(value_).contains(std::string(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  if (std::optional<JsonNode> found = find(key)) return *std::move(found);
  child(nullptr, key).fail("is missing", "add the key, or fetch the file again from where the model came");
}

bool JsonNode::is_object() const { return json(value_).is_object(); }
bool JsonNode::is_array() const { return json(value_).is_array(); }
bool JsonNode::is_text() const { return json(value_).is_string(); }

std::int64_t JsonNode::integer(std::int64_t low, std::int64_t high) const {
  const Json& value = json(value_);
  const bool too_big = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (!value.is_number_integer() || too_big || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    fail("should be an integer from " + std::to_string(low) + " to " + std::to_string(high), kDamaged);
  }
  return value.get<std::int64_t>();
}

double JsonNode::number() const {
  if (!json(value_).is_number() || !std::isfinite(json(value_).get<double>())) {
    fail("should be a finite number", kDamaged);
  }
  return json(value_).get<double>();
}

bool JsonNode::flag() const {
  if (!json(value_).is_boolean()) fail("should be true or false", kDamaged);
  return json(value_).get<bool>();
}

const std::string& JsonNode::text() const {
  if (!is_text()) fail("should be a string", kDamaged);
  return json(value_).get_ref<const std::string&>();
}

void JsonNode::each_member(const std::function<void(const std::string&, const JsonNode&)>& visit) const {
  if (!is_object()) fail("should be an object", kDamaged);
  for (const auto& [key, value] : json(value_).items()) visit(key, child(&value, key));
}

void JsonNode::each_element(const std::function<void(const JsonNode&)>& visit) const {
  if (!is_array()) fail("should be an array", kDamaged);
  const Json& values = json(value_);
  for (std::size_t i = 0; i < values.size(); ++i) visit(child(&values[i], "[" + std::to_string(i) + "]"));
}

void JsonNode::fail(const std::string& problem, const std::string& remedy) const {
  throw ModelError(document_->file, (path_.empty() ? "the root" : "\"" + path_ + "\"") + " " + problem, remedy);
}

}  // namespace llama
