// JSON as a value: keys keep their order.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// Throws Problem as make_list() does.
Value value_of(Budget& budget, const nlohmann::ordered_json& json);

}  // namespace llama::jinja
