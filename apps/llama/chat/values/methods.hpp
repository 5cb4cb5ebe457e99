// The methods of strings and dictionaries. None changes its value: a rendering is Hugging Face's immutable sandbox.
#pragma once

#include <optional>
#include <string>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// A function of `value`, if its kind has a method of that name. One that would change the value is there too, and throws
/// Problem when it is called.
std::optional<Value> method_of(const Value& value, const std::string& name);

}  // namespace llama::jinja
