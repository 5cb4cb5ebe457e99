// JSON that is nested deeper than any model's: every file that is read refuses it, whatever it stands for there.
#include <functional>
#include <span>
#include <string>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/checkpoint/json_node.hpp"
#include "apps/llama/checkpoint/safetensors.hpp"
#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;

namespace {

constexpr int kDeep = 20'000;

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string arrays(int depth) { return times(depth, "[") + times(depth, "]"); }
std::string objects(int depth) { return times(depth, R"({"a":)") + "0" + times(depth, "}"); }

/// `depth` steps of the kind "Sequence" around one of another kind.
std::string sequences(int depth, const std::string& list, const std::string& step) {
  return times(depth, R"({"type":"Sequence",")" + list + "\":[") + step + times(depth, "]}");
}

/// The shipped tokenizer.json with `value` at `key`.
std::string tokenizer_with(const std::string& key, const std::string& value) {
  nlohmann::json json = read_json(kModelFolder / "tokenizer.json");
  json[key] = "its place";
  std::string text = json.dump();
  return text.replace(text.find("\"its place\""), std::string("\"its place\"").size(), value);
}

void check_refused(const std::string& file, const std::function<void()>& read) {
  const std::string error = model_error_of(read);
  INFO(error);
  CHECK(mentions(error, {file, "nested deeper than 64 levels", "fetch it again"}));
}

}  // namespace

TEST_CASE("a tokenizer.json of 20000 nested sequences is refused") {
  const auto check = [](const std::string& key, const std::string& list, const std::string& step) {
    const std::string text = tokenizer_with(key, sequences(kDeep, list, step));
    check_refused("tokenizer.json", [&] { Tokenizer::parse(text, "tokenizer.json"); });
  };
  check("normalizer", "normalizers", R"({"type":"NFC"})");
  check("pre_tokenizer", "pretokenizers", R"({"type":"ByteLevel"})");
  check("post_processor", "processors", R"({"type":"ByteLevel"})");
  check("decoder", "decoders", R"({"type":"ByteLevel"})");
}

TEST_CASE("a few nested sequences are read") {
  const std::string text = tokenizer_with("normalizer", sequences(20, "normalizers", R"({"type":"NFC"})"));
  CHECK(Tokenizer::parse(text, "tokenizer.json").encode("the") == Tokenizer::load(kModelFolder).encode("the"));
}

TEST_CASE("deep arrays and objects are refused in every file, also under a key that nobody reads") {
  for (const std::string& deep : {arrays(kDeep), objects(kDeep)}) {
    const std::string text = R"({"unread":)" + deep + "}";
    const TempFolder folder;
    check_refused("config.json", [&] { parse_config(text, "config.json"); });
    check_refused("tokenizer.json", [&] { Tokenizer::parse(text, "tokenizer.json"); });
    const std::string file = safetensors_file(text, "");
    check_refused("model.safetensors", [&] { read_safetensors(std::as_bytes(std::span(file)), "model.safetensors"); });
    const auto index = folder.write("model.safetensors.index.json", text);
    check_refused("index.json", [&] { SafeTensors::open(index); });
    std::filesystem::copy_file(kModelFolder / "config.json", folder.path() / "config.json");
    folder.write("generation_config.json", text);
    check_refused("generation_config.json", [&] { read_config(folder.path()); });
  }
}

TEST_CASE("64 levels are read, and 65 are not") {
  CHECK(model_error_of([] { JsonNode::parse(R"({"a":)" + arrays(63) + "}", "x"); }).empty());
  check_refused("x", [] { JsonNode::parse(R"({"a":)" + arrays(64) + "}", "x"); });
  check_refused("x", [] { JsonNode::parse(objects(65), "x"); });
  CHECK(model_error_of([] { JsonNode::parse(objects(64), "x"); }).empty());
}
