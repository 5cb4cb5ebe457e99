// Values as text: as Python prints them, and as its json module does.
#pragma once

#include <string>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// str(): what `{{ value }}` writes. Nothing for an undefined value, "True", "1.0", "['a', 1]".
std::string printed(Budget& budget, const Value& value);

struct JsonStyle {
  int indent = -1;  // spaces a level; below 0: all in one line
  std::string item_end = ", ", key_end = ": ";
  bool ascii = false;  // \u escapes for all else
  bool sorted = false;
};
/// json.dumps(). Throws Problem for what JSON has no word for.
std::string json_of(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace llama::jinja
