// The functions that a template may call by name, as Hugging Face gives them.
#pragma once

#include <ctime>
#include <deque>
#include <string>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// What functions need of the rendering that calls them.
struct Surroundings {
  std::time_t now = 0;
  std::deque<Namespace> spaces{};  // those that it made, which stay where they are
};

/// raise_exception, strftime_now, range, dict or namespace; undefined for another name. `around` must outlive the value.
Value function_of(const std::string& name, Surroundings& around);

}  // namespace llama::jinja
