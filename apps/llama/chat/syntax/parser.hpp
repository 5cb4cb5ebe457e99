// A template's text as a tree.
#pragma once

#include <string_view>

#include "apps/llama/chat/syntax/node.hpp"

namespace llama::jinja {

/// Throws TemplateError for what is no template, for statements that are not known here, and for blocks and expressions that
/// are nested too deep.
Body parse_template(std::string_view source);

}  // namespace llama::jinja
