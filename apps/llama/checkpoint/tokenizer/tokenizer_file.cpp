#include "apps/llama/checkpoint/tokenizer/tokenizer_file.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/json_node.hpp"

namespace llama {
namespace {

constexpr int kLargestId = (1 << 22) - 1;
constexpr const char* kDamaged = "fetch tokenizer.json again from where the model came";
constexpr const char* kOtherModel = "use a model with a byte-level BPE tokenizer as GPT-2, Llama 3, Qwen 2 or Qwen 3 have it";

int id_at(const JsonNode& node) { return static_cast<int>(node.integer(0, kLargestId)); }

bool flag_at(const JsonNode& node, std::string_view key, bool otherwise) {
  const auto flag = node.find(key);
  return flag ? flag->flag() : otherwise;
}

std::string type_of(const JsonNode& node) {
  const auto type = node.find("type");
  return type ? type->text() : "";
}

[[noreturn]] void refuse_type(const JsonNode& node) {
  node.fail("is of the type \"" + type_of(node) + "\", which this program does not know", kOtherModel);
}

// "Sequence" holds a list of its own kind under `list`; anything else is a list of one.
template <class Visit>
void each_step(const JsonNode& node, std::string_view list, const Visit& visit) {
  if (type_of(node) != "Sequence") return visit(node);
  node.at(list).each_element([&](const JsonNode& step) { each_step(step, list, visit); });
}

// ---- model: vocabulary and merges ----

void refuse_variants(const JsonNode& model) {
  if (model.find("type") && type_of(model) != "BPE") refuse_type(model);
  if (flag_at(model, "byte_fallback", false)) {
    model.at("byte_fallback").fail("is true: a SentencePiece tokenizer, as Llama 2 has it", kOtherModel);
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto affix = model.find(key);
    if (affix && !affix->text().empty()) affix->fail("is \"" + affix->text() + "\", not empty", kOtherModel);
  }
  const auto dropout = model.find("dropout");
  if (dropout && dropout->number() != 0) dropout->fail("is set, so ids would be random", "set \"dropout\" to null");
}

void read_vocabulary(const JsonNode& vocab, Vocabulary& vocabulary) {
  vocab.each_member([&](const std::string& written, const JsonNode& id) {
    if (written.empty()) id.fail("is an empty token", kDamaged);
    if (!vocabulary.add(id_at(id), written)) {
      id.fail("has the id " + std::to_string(id_at(id)) + ", which another token has too", kDamaged);
    }
  });
}

// A merge is "a b" in files of older tokenizers releases and ["a", "b"] in newer ones.
std::pair<std::string, std::string> read_pair(const JsonNode& merge) {
  std::vector<std::string> sides;
  if (merge.is_text()) {
    const std::string& text = merge.text();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos) merge.fail("has no space between two tokens", kDamaged);
    return {text.substr(0, space), text.substr(space + 1)};
  }
  merge.each_element([&](const JsonNode& side) { sides.push_back(side.text()); });
  if (sides.size() != 2) merge.fail("should be a pair of tokens", kDamaged);
  return {sides[0], sides[1]};
}

using Spelling = std::unordered_map<std::string, int>;  // ids by the token as the file spells it

int spelled_id(const Spelling& ids, const std::string& token, const JsonNode& merge) {
  const auto found = ids.find(token);
  if (found == ids.end()) merge.fail("needs the token \"" + token + "\", which vocab lacks", kDamaged);
  return found->second;
}

BytePairEncoder read_merges(const JsonNode& model, const Vocabulary& vocabulary) {
  Spelling ids;
  model.at("vocab").each_member([&](const std::string& written, const JsonNode& id) { ids[written] = id_at(id); });
  std::vector<BytePairEncoder::Merge> merges;
  model.at("merges").each_element([&](const JsonNode& merge) {
    const auto [left, right] = read_pair(merge);
    merges.push_back({spelled_id(ids, left, merge), spelled_id(ids, right, merge), spelled_id(ids, left + right, merge)});
  });
  std::array<int, 256> byte_ids{};
  for (std::size_t byte = 0; byte < byte_ids.size(); ++byte) {
    const auto id = vocabulary.find_piece(std::string(1, static_cast<char>(byte)));
    if (!id) model.at("vocab").fail("lacks a token for the single byte " + std::to_string(byte), kOtherModel);
    byte_ids[byte] = *id;
  }
  return BytePairEncoder(byte_ids, merges);
}

// ---- added tokens ----

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token{node.at("content").text(), id_at(node.at("id")), flag_at(node, "special", false),
                   flag_at(node, "normalized", false)};
  if (token.content.empty()) node.at("content").fail("is empty", kDamaged);
  for (const char* key : {"single_word", "lstrip", "rstrip"}) {
    if (flag_at(node, key, false)) node.at(key).fail("is true for \"" + token.content + "\"", kOtherModel);
  }
  return token;
}

AddedTokens read_added_tokens(const JsonNode& root, Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (const auto list = root.find("added_tokens")) {
    list->each_element([&](const JsonNode& node) {
      tokens.push_back(read_added_token(node));
      if (!vocabulary.add_special(tokens.back().id, tokens.back().content, tokens.back().special)) {
        node.at("id").fail("belongs to another token already", kDamaged);
      }
    });
  }
  return AddedTokens(tokens);
}

// ---- the steps before and after ----

void check_normalizer(const JsonNode& root) {
  const auto normalizer = root.find("normalizer");
  if (!normalizer) return;
  each_step(*normalizer, "normalizers", [](const JsonNode& step) {
    if (type_of(step) != "NFC") refuse_type(step);
  });
}

SplitRule read_split(const JsonNode& node) {
  const auto pattern = node.at("pattern").find("Regex");
  if (!pattern) node.at("pattern").fail("is no Regex", kOtherModel);
  if (node.at("behavior").text() != "Isolated" || flag_at(node, "invert", false)) {
    node.fail("does not keep matches as pieces of their own (\"Isolated\")", kOtherModel);
  }
  if (const auto rule = split_rule_of(pattern->text())) return *rule;
  pattern->fail("is none of the patterns of GPT-2, Llama 3 and Qwen 2: " + pattern->text(), kOtherModel);
}

void read_pre_tokenizer(const JsonNode& root, TokenizerParts& parts) {
  bool byte_level = false;
  each_step(root.at("pre_tokenizer"), "pretokenizers", [&](const JsonNode& step) {
    const std::string type = type_of(step);
    if (byte_level || (type != "Split" && type != "ByteLevel")) refuse_type(step);
    if (type == "Split") return parts.rules.push_back(read_split(step));
    byte_level = true;
    parts.add_prefix_space = flag_at(step, "add_prefix_space", true);
    if (parts.add_prefix_space && !parts.rules.empty()) {
      step.fail("adds a space in front of every piece of a Split", kOtherModel);
    }
    if (flag_at(step, "use_regex", true)) parts.rules.push_back(SplitRule::kGpt2);
  });
  if (!byte_level) root.at("pre_tokenizer").fail("has no ByteLevel step", kOtherModel);
}

void read_template(const JsonNode& node, TokenizerParts& parts) {
  bool before_text = true;
  node.at("single").each_element([&](const JsonNode& part) {
    if (part.find("Sequence")) {
      before_text = false;
      return;
    }
    const std::string name = part.at("SpecialToken").at("id").text();
    std::vector<int>& ids = before_text ? parts.prefix : parts.suffix;
    node.at("special_tokens").at(name).at("ids").each_element([&](const JsonNode& id) { ids.push_back(id_at(id)); });
  });
}

void read_post_processor(const JsonNode& root, TokenizerParts& parts) {
  const auto processor = root.find("post_processor");
  if (!processor) return;
  each_step(*processor, "processors", [&](const JsonNode& step) {
    if (type_of(step) == "ByteLevel") return;  // it only moves offsets, which are not used here
    if (type_of(step) != "TemplateProcessing") refuse_type(step);
    read_template(step, parts);
  });
}

void check_decoder(const JsonNode& root) {
  each_step(root.at("decoder"), "decoders", [](const JsonNode& step) {
    if (type_of(step) != "ByteLevel") refuse_type(step);
  });
}

}  // namespace

TokenizerParts read_tokenizer(std::string_view json, const std::filesystem::path& file) {
  const JsonNode root = JsonNode::parse(json, file);
  const JsonNode model = root.at("model");
  TokenizerParts parts;
  refuse_variants(model);
  check_normalizer(root);
  read_pre_tokenizer(root, parts);
  read_post_processor(root, parts);
  check_decoder(root);
  read_vocabulary(model.at("vocab"), parts.vocabulary);
  parts.merges = read_merges(model, parts.vocabulary);
  parts.added = read_added_tokens(root, parts.vocabulary);
  parts.ignore_merges = flag_at(model, "ignore_merges", false);
  return parts;
}

}  // namespace llama
