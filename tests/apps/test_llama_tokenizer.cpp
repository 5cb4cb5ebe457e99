// Ids and texts against what the tokenizers library gives (tools/golden_llama.py wrote the golden file), and
// the round trip of any text.
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Ids = std::vector<int>;
using Json = nlohmann::json;

namespace {

const Json& golden() {
  static const Json kGolden = read_json(kGoldenFolder / "golden_tokenizer.json");
  return kGolden;
}

// "shipped", or one of the two that stand in the golden file.
const Tokenizer& tokenizer(const std::string& name) {
  static const Tokenizer kShipped = Tokenizer::load(kModelFolder);
  static const Tokenizer kLlama3 = Tokenizer::parse(golden().at("llama3").at("tokenizer").dump(), "llama3");
  static const Tokenizer kQwen2 = Tokenizer::parse(golden().at("qwen2").at("tokenizer").dump(), "qwen2");
  return name == "shipped" ? kShipped : name == "llama3" ? kLlama3 : kQwen2;
}

const std::vector<std::string> kNames = {"shipped", "llama3", "qwen2"};

// Text of all planes and of what the rules look at: letters, digits, spaces, newlines, apostrophes.
std::string any_text() {
  static const std::vector<std::string> kParts = {" ",  "  ", "\n", "\r\n", "\t", "'s", "'LL", "'",      "the", "Word",
                                                  "12", "7",  "!?", ".",    "é",  "中", "😀",   "\u00a0", "ſ",   "½"};
  std::string text;
  const int count = *rc::gen::inRange(0, 60);
  for (int i = 0; i < count; ++i) text += *rc::gen::elementOf(kParts);
  return text;
}

}  // namespace

TEST_CASE("ids are those of the tokenizers library") {
  for (const std::string& name : kNames) {
    const Json& cases = golden().at(name).at("cases");
    CHECK(cases.size() >= 190);
    for (const Json& row : cases) {
      INFO(name << ": " << row.dump());
      CHECK(tokenizer(name).encode(row.at("text").get<std::string>()) == row.at("ids").get<Ids>());
    }
  }
}

TEST_CASE("decoded texts are those of the tokenizers library") {
  for (const std::string& name : kNames) {
    for (const Json& row : golden().at(name).at("cases")) {
      INFO(name << ": " << row.dump());
      CHECK(tokenizer(name).decode(row.at("ids").get<Ids>()) == row.at("decoded").get<std::string>());
    }
  }
}

TEST_CASE("ids whose bytes are no UTF-8 decode as in the tokenizers library") {
  int replaced = 0;
  for (const Json& row : golden().at("shipped").at("noise")) {
    const auto expected = row.at("decoded").get<std::string>();
    INFO(row.dump());
    CHECK(tokenizer("shipped").decode(row.at("ids").get<Ids>()) == expected);
    replaced += expected.find("\ufffd") != std::string::npos;
  }
  CHECK(replaced > 10);
}

TEST_CASE("add_prefix_space gives the library's ids") {
  Json json = read_json(kModelFolder / "tokenizer.json");
  json["pre_tokenizer"]["add_prefix_space"] = true;
  const Tokenizer prefixed = Tokenizer::parse(json.dump(), "prefixed");
  for (const Json& row : golden().at("shipped").at("prefix_space")) {
    INFO(row.dump());
    CHECK(prefixed.encode(row.at("text").get<std::string>()) == row.at("ids").get<Ids>());
  }
}

TEST_CASE("decode of encode is the text") {
  for (const std::string& name : kNames) {
    CHECK(rc::check(name + ": text of the rules' own parts", [&] {
      const std::string text = any_text();
      RC_ASSERT(tokenizer(name).decode(tokenizer(name).encode_plain(text)) == text);
    }));
    CHECK(rc::check(name + ": any bytes, by the bytes of the tokens", [&] {
      const auto text = *rc::gen::arbitrary<std::string>();
      std::string bytes;
      for (const int id : tokenizer(name).encode_plain(text)) bytes += tokenizer(name).bytes_of(id);
      RC_ASSERT(bytes == text);
    }));
  }
}

TEST_CASE("a text shown token by token is the whole text, and valid at every step") {
  for (const std::string& name : kNames) {
    for (const Json& row : golden().at(name).at("cases")) {
      const Ids ids = row.at("ids").get<Ids>();
      Decoder decoder(tokenizer(name));
      std::string shown;
      for (const int id : ids) {
        const std::string part = decoder.push(id);
        CHECK(part.find("\ufffd") == std::string::npos);
        shown += part;
      }
      CHECK(shown + decoder.finish() == tokenizer(name).decode_visible(ids));
    }
  }
}

TEST_CASE("a character in several tokens appears with its last one") {
  const Tokenizer& shipped = tokenizer("shipped");
  const Ids ids = shipped.encode("😀");
  REQUIRE(ids.size() == 4);
  Decoder decoder(shipped);
  for (std::size_t i = 0; i < 3; ++i) CHECK(decoder.push(ids[i]).empty());
  CHECK(decoder.push(ids[3]) == "😀");
  CHECK(decoder.push(ids[0]).empty());
  CHECK(decoder.finish() == "\ufffd");
  CHECK(decoder.finish().empty());
}

TEST_CASE("special tokens are found in texts and left out of what is shown") {
  const Tokenizer& llama3 = tokenizer("llama3");
  const auto begin = llama3.id_of("<|begin_of_text|>");
  REQUIRE(begin.has_value());
  CHECK(llama3.is_special(*begin));
  const Ids ids = llama3.encode("To be<|eot_id|>");
  CHECK(ids.front() == *begin);
  CHECK(ids.back() == llama3.id_of("<|eot_id|>"));
  CHECK(llama3.encode_plain("To be") == Ids(ids.begin() + 1, ids.end() - 1));
  CHECK(llama3.decode(ids) == "<|begin_of_text|>To be<|eot_id|>");
  CHECK(llama3.decode_visible(ids) == "To be");
  CHECK_FALSE(llama3.id_of("<|no such token|>").has_value());
}

TEST_CASE("ids without a token stand for nothing") {
  const Tokenizer& shipped = tokenizer("shipped");
  CHECK(shipped.size() == 1024);
  CHECK(shipped.decode(Ids{-1, 1024, 1 << 30}).empty());
  CHECK_FALSE(shipped.is_special(-1));
  CHECK(shipped.is_special(0));
}

TEST_CASE("a long word takes no quadratic time") {
  const std::string word(200'000, 'e');
  CHECK(tokenizer("shipped").decode(tokenizer("shipped").encode(word)) == word);
}
