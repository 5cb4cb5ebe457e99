#include "apps/llama/chat/template.hpp"

#include "apps/llama/chat/syntax/parser.hpp"
#include "apps/llama/checkpoint/error.hpp"

namespace llama {
namespace {

ModelError placed(const std::filesystem::path& file, const jinja::TemplateError& error) {
  return {file, "line " + std::to_string(error.line()) + " of the chat template: " + error.what(), error.remedy()};
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::filesystem::path file) : file_(std::move(file)) {
  try {
    body_ = std::make_shared<const jinja::Body>(jinja::parse_template(source));
  } catch (const jinja::TemplateError& error) {
    throw placed(file_, error);
  }
}

std::string ChatTemplate::render(const jinja::Names& names, std::time_t now, std::uint64_t steps) const {
  try {
    jinja::Budget budget(steps);
    return jinja::Renderer(budget, now).render(*body_, names);
  } catch (const jinja::TemplateError& error) {
    throw placed(file_, error);
  }
}

}  // namespace llama
