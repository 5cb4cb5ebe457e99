// A chat template, and behind a zero byte what its names stand for, as JSON: whatever they are, the template is refused with a
// ModelError, refuses by itself, or gives the same text twice.
#include <nlohmann/json.hpp>
#include <string>

#include "apps/llama/chat/template.hpp"
#include "apps/llama/chat/values/json.hpp"
#include "apps/llama/checkpoint/error.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

namespace {

constexpr std::uint64_t kSteps = 200'000;  // fewer than a program gives: an execution ends within a second

constexpr const char* kUsualNames =
    R"({"messages":[{"role":"system","content":" Be. "},{"role":"user","content":"a <|b|> \u00e4"},)"
    R"({"role":"assistant","content":"c"}],)"
    R"("add_generation_prompt":true,"tools":[{"name":"f","in":[1,2.5,null]}],"bos_token":"<s>","eos_token":"</s>"})";

jinja::Names names_of(std::string_view json) {
  jinja::Names names;
  auto object = nlohmann::ordered_json::parse(json, nullptr, false);
  if (!object.is_object()) object = nlohmann::ordered_json::parse(kUsualNames);
  try {
    jinja::Budget budget(kSteps);
    for (const auto& [name, value] : object.items()) names.emplace_back(name, jinja::value_of(budget, value));
  } catch (const jinja::Problem&) {}
  return names;
}

std::string outcome(const ChatTemplate& made, const jinja::Names& names) {
  try {
    return made.render(names, 1'732'963'200, kSteps);
  } catch (const jinja::Refusal& refusal) {
    return refusal.what();
  } catch (const ModelError& error) {
    return error.what();
  }
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  const auto [source, json] = flywheel::fuzz::cut_at(input, '\0');
  try {
    const ChatTemplate made(source, "chat.jinja");
    const jinja::Names names = names_of(json);
    const std::string first = outcome(made, names);
    expect(first == outcome(made, names), "a template gives the same text again");
    expect(first.size() < 16 * kSteps + source.size() + 1024, "a text stays within what steps allow");
  } catch (const ModelError&) {}
}
