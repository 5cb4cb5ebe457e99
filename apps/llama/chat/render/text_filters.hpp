// The filters that give a text or a number.
#pragma once

#include "apps/llama/chat/render/call.hpp"

namespace llama::jinja {

/// Null where there is none of that name.
const Filter* find_text_filter(std::string_view name);

}  // namespace llama::jinja
