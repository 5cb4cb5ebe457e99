// What filters and tests are called with, and where they are found by name.
#pragma once

#include <string>
#include <string_view>

#include "apps/llama/chat/values/arguments.hpp"
#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

struct Applied {
  Budget& budget;
  const std::string& name;  // of the filter or test
  const Value& input;
  const Arguments& arguments;

  Given given(const std::vector<std::string>& names, std::size_t required = 0) const {
    return Given(name, arguments, names, required);
  }
};

using FilterFunction = Value (*)(const Applied&);
struct Filter {
  std::string_view name;
  FilterFunction function;
};

/// `input|name(arguments)`. Throws Problem for a filter that is not known, and for what it does not take.
Value filtered(Budget& budget, const std::string& name, const Value& input, const Arguments& arguments);
/// `input is name(arguments)`. Throws as filtered().
bool passes(Budget& budget, const std::string& name, const Value& input, const Arguments& arguments);
bool is_filter(std::string_view name);
bool is_test(std::string_view name);

}  // namespace llama::jinja
