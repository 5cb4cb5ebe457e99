#include "apps/llama/chat/conversation.hpp"

#include <algorithm>
#include <optional>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/json_node.hpp"
#include "apps/llama/checkpoint/mapped_file.hpp"

namespace llama {
namespace {

constexpr const char* kNameTemplate = "name one with --template FILE, or write texts with llama generate";

std::optional<JsonNode> read_tokenizer_config(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return std::nullopt;
  return JsonNode::parse(read_text(file, "make it a readable file, or remove it"), file);
}

/// Tokens stand there as texts, or as objects with their "content".
jinja::Names special_tokens(const std::optional<JsonNode>& config) {
  jinja::Names names;
  if (!config) return names;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const auto token = config->find(key);
    if (token) names.emplace_back(key, token->is_object() ? token->at("content").text() : token->text());
  }
  return names;
}

std::string default_of(const JsonNode& list) {
  std::optional<std::string> found;
  list.each_element([&](const JsonNode& entry) {
    if (entry.at("name").text() == "default") found = entry.at("template").text();
  });
  if (!found) list.fail("has no template named \"default\"", "name a file with the one to use with --template FILE");
  return *found;
}

ChatTemplate template_of_config(const std::optional<JsonNode>& config, const std::filesystem::path& file) {
  if (!config) throw ModelError(file, "is not there, so the model has no chat template", kNameTemplate);
  const auto found = config->find("chat_template");
  if (!found) throw ModelError(file, "has no \"chat_template\"", kNameTemplate);
  return {found->is_array() ? default_of(*found) : found->text(), file};
}

ChatTemplate read_template(const std::filesystem::path& file) {
  return {read_text(file, "name a file with a chat template"), file};
}

jinja::Value message_value(jinja::Budget& budget, const Message& message) {
  return make_dict(budget, {{"role", message.role}, {"content", message.content}});
}

}  // namespace

ChatFormat ChatFormat::load(const std::filesystem::path& folder, const std::filesystem::path& named) {
  const std::filesystem::path file = folder / "tokenizer_config.json", own = folder / "chat_template.jinja";
  const auto config = read_tokenizer_config(file);
  std::error_code none;
  const std::filesystem::path& separate = named.empty() && std::filesystem::exists(own, none) ? own : named;
  return {separate.empty() ? template_of_config(config, file) : read_template(separate), special_tokens(config)};
}

std::string ChatFormat::render(const std::vector<Message>& messages, std::time_t now, bool begins_answer) const {
  jinja::Budget budget(jinja::kUsualSteps);
  jinja::Values all;
  for (const Message& message : messages) all.push_back(message_value(budget, message));
  jinja::Names names = special_;
  names.emplace_back("messages", make_list(budget, std::move(all)));
  names.emplace_back("tools", jinja::None());
  names.emplace_back("documents", jinja::None());
  names.emplace_back("add_generation_prompt", begins_answer);
  return template_.render(names, now);
}

std::string ChatFormat::text(const std::vector<Message>& messages, std::time_t now) const {
  return render(messages, now, true);
}

std::vector<std::uint32_t> ChatFormat::tokens(const Tokenizer& tokenizer, const std::vector<Message>& messages,
                                              std::time_t now) const {
  std::vector<Message> guarded;
  for (const auto& [role, content] : messages) guarded.push_back({role, tokenizer.guarded(content)});
  const std::vector<int> ids = tokenizer.encode_guarded(text(guarded, now));
  return {ids.begin(), ids.end()};
}

std::string ChatFormat::next_turn(const Tokenizer& tokenizer, std::time_t now) const {
  const std::string answer = "the answer of the model", next = "the next message";
  std::string all;
  try {
    all = render({{"user", "the first message"}, {"assistant", answer}, {"user", next}}, now, false);
  } catch (const std::runtime_error&) {  // who gets an answer is told of what is wrong
    return "";
  }
  const std::size_t begin = all.find(answer), end = all.find(next);
  if (begin == all.npos || end == all.npos || end < begin) return "";
  all = all.substr(begin + answer.size(), end - begin - answer.size());
  const std::string between(jinja::strip_right(all));
  const std::vector<int> ids = tokenizer.encode_plain(between);
  const bool has_special = std::ranges::any_of(ids, [&](int id) { return tokenizer.is_special(id); });
  return has_special || jinja::strip(between).empty() ? "" : between;
}

}  // namespace llama
