// Chat templates give, byte for byte, what jinja2 gives in Hugging Face's settings: tools/golden_chat.py wrote down what.
#include <fstream>
#include <iterator>
#include <optional>

#include "catch.hpp"
#include "llama_chat_support.hpp"

namespace llama {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

const Json& golden() {
  static const Json kGolden = Json::parse(text_of(kGoldenFolder / "golden_chat.json"));
  return kGolden;
}

std::string source_of(const std::string& name) {
  if (name == "model") return read_json(kModelFolder / "tokenizer_config.json")["chat_template"];
  return text_of(kGoldenFolder / "chat" / (name + ".jinja"));
}

/// Nothing where it raises an exception.
std::optional<std::string> result_of(const std::string& source, const Json& with) {
  try {
    return rendered(source, with);
  } catch (const ModelError& error) {
    CHECK(mentions(error.what(), {"chat.jinja: line ", " of the chat template: ", "--template"}));
  } catch (const jinja::Refusal&) {}
  return std::nullopt;
}

void check_same(const std::string& source, const Json& with, const Json& wanted) {
  const auto text = result_of(source, with);
  INFO(source << "\nwanted " << wanted.dump());
  REQUIRE(text.has_value() == wanted.is_string());
  if (text) CHECK(*text == wanted.get<std::string>());
}

/// Times are local.
struct InUtc {
  InUtc() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

}  // namespace

TEST_CASE("chat template: conversations are as jinja2 writes them") {
  const InUtc utc;
  REQUIRE(golden()["conversations"].size() > 150);
  for (const Json& one : golden()["conversations"])
    check_same(source_of(one["template"]), golden()["with"][one["with"].get<std::size_t>()], one["text"]);
}

TEST_CASE("chat template: everything that templates use is as jinja2 does it") {
  const InUtc utc;
  REQUIRE(golden()["pieces"].size() > 150);
  for (const Json& one : golden()["pieces"]) check_same(one["source"], golden()["pieces_with"], one["text"]);
}

}  // namespace llama
