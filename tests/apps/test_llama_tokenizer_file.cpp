// What a tokenizer.json may ask for and what it may not.
#include <rapidcheck.h>

#include <functional>
#include <string>

#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Json = nlohmann::json;

namespace {

const Json& shipped() {
  static const Json kShipped = read_json(kModelFolder / "tokenizer.json");
  return kShipped;
}

const Json& llama3() {
  static const Json kLlama3 = read_json(kGoldenFolder / "golden_tokenizer.json").at("llama3").at("tokenizer");
  return kLlama3;
}

std::string error_after(Json json, const std::function<void(Json&)>& edit) {
  edit(json);
  return model_error_of([&] { Tokenizer::parse(json.dump(), "tokenizer.json"); });
}

std::string error_at(const Json& json, const char* place, const Json& value) {
  return error_after(json, [&](Json& edited) { edited[Json::json_pointer(place)] = value; });
}

}  // namespace

TEST_CASE("both spellings of merges give the same tokenizer") {
  Json json = shipped();
  for (Json& merge : json["model"]["merges"]) {
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const std::string text = "Now is the winter of our discontent";
  CHECK(Tokenizer::parse(json.dump(), "strings").encode(text) == Tokenizer::load(kModelFolder).encode(text));
}

TEST_CASE("ignore_merges finds a token that no merge makes") {
  const Tokenizer with = Tokenizer::parse(llama3().dump(), "with");
  CHECK(with.encode_plain(" the").size() == 1);
  Json json = llama3();
  json["model"]["ignore_merges"] = false;
  CHECK(Tokenizer::parse(json.dump(), "without").encode_plain(" the").size() > 1);
}

TEST_CASE("the longest added token counts, and those of normalised text come last") {
  Json json = shipped();
  const std::vector<std::pair<const char*, bool>> added = {{"<a>", false}, {"<a><b>", false}, {"x<a", true}};
  for (const auto& [content, normalized] : added) {
    const std::size_t id = 1023 + json["added_tokens"].size();
    json["added_tokens"].push_back({{"id", id}, {"content", content}, {"normalized", normalized}});
  }
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "added");
  CHECK(tokenizer.encode("<a><b><a>") == std::vector<int>{1025, 1024});
  CHECK(tokenizer.encode("x<a>") == std::vector<int>{*tokenizer.id_of("x"), 1024});
  CHECK(tokenizer.encode("x<a") == std::vector<int>{1026});
  CHECK(tokenizer.decode_visible(tokenizer.encode("x<a>")) == "x<a>");
}

TEST_CASE("another kind of tokenizer is refused, naming what it asks for") {
  CHECK(mentions(error_at(shipped(), "/model/type", "Unigram"), {"\"model\"", "Unigram", "byte-level BPE"}));
  CHECK(mentions(error_at(shipped(), "/model/byte_fallback", true), {"model.byte_fallback", "SentencePiece"}));
  CHECK(mentions(error_at(shipped(), "/model/dropout", 0.1), {"model.dropout", "random"}));
  CHECK(mentions(error_at(shipped(), "/model/end_of_word_suffix", "</w>"), {"end_of_word_suffix", "</w>"}));
  CHECK(mentions(error_at(shipped(), "/normalizer", {{"type", "Lowercase"}}), {"\"normalizer\"", "Lowercase"}));
  CHECK(mentions(error_at(shipped(), "/decoder", {{"type", "WordPiece"}}), {"\"decoder\"", "WordPiece"}));
  CHECK(mentions(error_at(shipped(), "/post_processor", {{"type", "Bert"}}), {"\"post_processor\"", "Bert"}));
  CHECK(mentions(error_at(shipped(), "/pre_tokenizer", {{"type", "Metaspace"}}), {"\"pre_tokenizer\"", "Metaspace"}));
  CHECK(mentions(error_at(shipped(), "/pre_tokenizer", nullptr), {"\"pre_tokenizer\"", "missing"}));
  CHECK(mentions(error_at(shipped(), "/added_tokens/0/lstrip", true), {"lstrip", "<|endoftext|>"}));
}

TEST_CASE("a Split that has no matcher here is refused, showing its pattern") {
  const char* split = "/pre_tokenizer/pretokenizers/0/";
  const auto error_of = [&](const std::string& key, const Json& value) {
    return error_at(llama3(), (split + key).c_str(), value);
  };
  CHECK(mentions(error_of("pattern", {{"Regex", R"(\w+|\s+)"}}), {"pattern.Regex", R"(\w+|\s+)", "GPT-2, Llama 3"}));
  CHECK(mentions(error_of("pattern", {{"String", " "}}), {"pattern", "no Regex"}));
  CHECK(mentions(error_of("behavior", "Removed"), {"Isolated"}));
  CHECK(mentions(error_of("invert", true), {"Isolated"}));
  CHECK(mentions(error_at(llama3(), "/pre_tokenizer/pretokenizers/1/add_prefix_space", true), {"in front of every"}));
  const auto no_bytes = error_after(llama3(), [](Json& json) { json["pre_tokenizer"]["pretokenizers"].erase(1); });
  CHECK(mentions(no_bytes, {"no ByteLevel"}));
}

TEST_CASE("a damaged vocabulary is refused, naming the entry") {
  CHECK(mentions(error_at(shipped(), "/model/vocab/the", 5), {"vocab.", "id 5"}));
  CHECK(mentions(error_at(shipped(), "/model/vocab/the", -5), {"vocab.the", "integer"}));
  CHECK(mentions(error_at(shipped(), "/model/vocab/the", 1e12), {"vocab.the", "integer"}));
  const auto no_e = error_after(shipped(), [](Json& json) { json["model"]["vocab"].erase("e"); });
  CHECK(mentions(no_e, {"model.merges", "needs the token \"e\""}));
  const auto no_zero = error_after(shipped(), [](Json& json) {
    json["model"]["vocab"].erase("\u0100");  // the byte 0, which no merge needs
  });
  CHECK(mentions(no_zero, {"model.vocab", "single byte 0"}));
  CHECK(mentions(error_at(shipped(), "/model/merges/0", "nothere x"), {"merges.[0]", "nothere"}));
  CHECK(mentions(error_at(shipped(), "/model/merges/0", "one"), {"merges.[0]", "no space"}));
  CHECK(mentions(error_at(shipped(), "/model/merges/0", {"a", "b", "c"}), {"merges.[0]", "pair"}));
  CHECK(mentions(error_at(shipped(), "/added_tokens/0/id", 40), {"added_tokens.[0].id", "another token"}));
  CHECK(mentions(error_at(shipped(), "/added_tokens/0/content", ""), {"content", "empty"}));
}

TEST_CASE("a token far beyond the others takes no room for the ids between") {
  Json json = shipped();
  const int far = (1 << 22) - 1;
  json["added_tokens"].push_back({{"id", far}, {"content", "<far>"}, {"special", true}});
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "far");
  CHECK(tokenizer.size() == far + 1);
  CHECK(tokenizer.encode("<far>") == std::vector<int>{far});
  CHECK((tokenizer.is_special(far) && !tokenizer.is_special(far - 1)));
  for (const int none : {-1, far - 1, far + 1}) CHECK(tokenizer.bytes_of(none).empty());
  CHECK(mentions(error_at(shipped(), "/added_tokens/0/id", far + 1), {"added_tokens.[0].id", "integer"}));
}

TEST_CASE("a missing or broken file is refused") {
  const TempFolder folder;
  CHECK(mentions(model_error_of([&] { Tokenizer::load(folder.path()); }), {"tokenizer.json", "missing"}));
  folder.write("tokenizer.json", "{\"model\":");
  CHECK(mentions(model_error_of([&] { Tokenizer::load(folder.path()); }), {"tokenizer.json", "no valid JSON"}));
}

TEST_CASE("damage anywhere is a ModelError or harmless") {
  const std::string sound = llama3().dump();
  CHECK(rc::check("bytes of a tokenizer.json changed", [&] {
    std::string text = sound;
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
      text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::inRange<char>(' ', '~');
    }
    try {
      const Tokenizer tokenizer = Tokenizer::parse(text, "damaged");
      RC_ASSERT(tokenizer.decode_visible(tokenizer.encode("To be, or not")).size() < 1000);
    } catch (const ModelError&) {}
  }));
}
