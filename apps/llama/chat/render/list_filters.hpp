// The filters that give a list, or an element of one.
#pragma once

#include "apps/llama/chat/render/call.hpp"

namespace llama::jinja {

/// Null where there is none of that name.
const Filter* find_list_filter(std::string_view name);

}  // namespace llama::jinja
