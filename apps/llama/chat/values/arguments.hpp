// The arguments of a function, method, filter or test, by the names of its parameters.
#pragma once

#include <string>
#include <vector>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// What a call gives to each of some parameters, in their order.
class Given {
 public:
  /// The first `required` must be given. Throws Problem, which names `function`, for those that are missing or too many, and
  /// for names that it does not have.
  Given(const std::string& function, const Arguments& arguments, const std::vector<std::string>& names,
        std::size_t required = 0);
  Given(const std::string&, Arguments&&, const std::vector<std::string>&, std::size_t = 0) = delete;  // they are kept

  const Value* find(std::size_t i) const { return given_[i]; }  // null: not given
  const Value& at(std::size_t i) const { return *given_[i]; }   // of those required

  // What is given, or else `absent`. They throw Problem for a value of another kind.
  std::string text(std::size_t i, const std::string& absent = "") const;
  std::int64_t integer(std::size_t i, std::int64_t absent) const;
  bool flag(std::size_t i, bool absent) const;

 private:
  [[noreturn]] void refuse(std::size_t i, const char* wanted) const;

  std::string function_;
  std::vector<std::string> names_;
  std::vector<const Value*> given_;
};

}  // namespace llama::jinja
