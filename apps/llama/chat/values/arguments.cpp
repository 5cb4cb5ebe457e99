#include "apps/llama/chat/values/arguments.hpp"

#include <algorithm>

namespace llama::jinja {

Given::Given(const std::string& function, const Arguments& arguments, const std::vector<std::string>& names,
             std::size_t required)
    : function_(function),
      names_(names),
      given_(names.size()) {
  if (arguments.positional.size() > names.size())
    throw Problem("'" + function + "' takes " + std::to_string(names.size()) + " arguments at most, and gets " +
                  std::to_string(arguments.positional.size()));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) given_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) throw Problem("'" + function + "' has no argument '" + name + "'");
    given_[static_cast<std::size_t>(found - names_.begin())] = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!given_[i]) throw Problem("'" + function + "' needs its argument '" + names_[i] + "'");
}

void Given::refuse(std::size_t i, const char* wanted) const {
  throw Problem("'" + function_ + "' takes " + wanted + " as its argument '" + names_[i] + "', not " + kind_of(at(i)));
}

std::string Given::text(std::size_t i, const std::string& absent) const {
  if (!find(i) || at(i).is<None>()) return absent;
  if (!at(i).is_text()) refuse(i, "a string");
  return at(i).text();
}

std::int64_t Given::integer(std::size_t i, std::int64_t absent) const {
  if (!find(i) || at(i).is<None>()) return absent;
  if (!at(i).is_integer()) refuse(i, "an integer");
  return at(i).integer();
}

bool Given::flag(std::size_t i, bool absent) const { return find(i) ? is_true(at(i)) : absent; }

}  // namespace llama::jinja
