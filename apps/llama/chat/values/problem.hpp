// What is wrong in a template, said where the line is not known: who evaluates a node adds it.
#pragma once

#include <stdexcept>
#include <string>

namespace llama::jinja {

inline constexpr const char* kMendTemplate = "mend the template, or name another with --template";

class Problem : public std::runtime_error {
 public:
  explicit Problem(const std::string& what, std::string remedy = kMendTemplate)
      : std::runtime_error(what),
        remedy_(std::move(remedy)) {}
  const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

/// A template that is damaged, asks for what there is not, or refuses the conversation: in line `line`, from 1.
class TemplateError : public Problem {
 public:
  TemplateError(int line, const Problem& problem) : Problem(problem), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

/// The template refuses the conversation: it calls raise_exception(), and what() is its message.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace llama::jinja
