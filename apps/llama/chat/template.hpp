// The chat template of a model: the part of Jinja that such templates use, as Hugging Face renders them. It is written here
// since Debian has no C++ library for it (neither jinja2cpp nor minja), and a program's model folder is all that it may need.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/chat/render/renderer.hpp"

namespace llama {

class ChatTemplate {
 public:
  /// Throws ModelError, which names `file` and the line, for what is no template or uses what is not known here.
  ChatTemplate(std::string_view source, std::filesystem::path file);

  /// Throws ModelError as above for what the template does wrong, and for more than `steps` steps (see jinja::Budget);
  /// jinja::Refusal where it refuses the conversation. `now`: what strftime_now() tells, in local time.
  std::string render(const jinja::Names& names, std::time_t now, std::uint64_t steps = jinja::kUsualSteps) const;

  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::shared_ptr<const jinja::Body> body_;
};

}  // namespace llama
