// Renders a parsed template: walks its tree with the values of its names.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/llama/chat/render/functions.hpp"
#include "apps/llama/chat/render/scope.hpp"
#include "apps/llama/chat/syntax/node.hpp"

namespace llama::jinja {

inline constexpr std::uint64_t kUsualSteps = 32'000'000;

/// Counts nodes that are evaluated inside one another, each of which takes stack. Throws Problem beyond 400.
class Level {
 public:
  explicit Level(int& open) : open_(open) {
    if (open_ >= kMostOpen) throw Problem("calls itself, or nests, too deep");
    ++open_;
  }
  ~Level() { --open_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  static constexpr int kMostOpen = 400;  // a node takes half a kilobyte of stack, and some where a sanitizer looks on
  int& open_;
};

/// The names that a template finds, and what they mean.
using Names = std::vector<std::pair<std::string, Value>>;

/// The text of one rendering. Throws TemplateError for what the template does wrong, for more steps than `budget` has and calls
/// that are nested too deep; Refusal where the template calls raise_exception().
class Renderer {
 public:
  Renderer(Budget& budget, std::time_t now) : budget_(budget), out_(budget), around_{.now = now} {}
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  std::string render(const Body& body, const Names& names);

 private:
  friend class Macro;
  enum class Flow : std::uint8_t { kOn, kBreak, kContinue };
  using ScopePointer = std::shared_ptr<Scope>;

  // Statements: renderer.cpp.
  Flow run(const Body& body, const ScopePointer& scope);
  Flow run(const Statement& statement, const ScopePointer& scope);
  Flow run_branch(const Statement& statement, const ScopePointer& scope);
  Flow run_loop(const Statement& statement, const ScopePointer& scope);
  Values loop_items(const Statement& statement, const ScopePointer& scope);
  Value loop_state(const Values& items, std::size_t i);
  void define_macro(const Statement& statement, const ScopePointer& scope);
  void assign(const Target& target, const Value& value, const ScopePointer& scope);
  void assign_names(const std::vector<std::string>& names, const Value& value, const ScopePointer& scope);
  void run_call(const Statement& statement, const ScopePointer& scope);
  std::string captured(const Body& body, const ScopePointer& scope);
  Value filtered_body(const Statement& statement, const ScopePointer& scope);
  Value call_macro(const Statement& macro, const ScopePointer& around, const Arguments& arguments);

  // Expressions: evaluate.cpp.
  Value evaluate(const Expression& node, const ScopePointer& scope);
  Value evaluated(const Expression& node, const ScopePointer& scope);
  Value of_name(const Expression& node, const ScopePointer& scope);
  Value of_list(const Expression& node, const ScopePointer& scope);
  Value of_dict(const Expression& node, const ScopePointer& scope);
  Value of_slice(const Expression& node, const ScopePointer& scope);
  Value of_call(const Expression& node, const ScopePointer& scope);
  Value of_comparison(const Expression& node, const ScopePointer& scope);
  Value of_item(const Expression& node, const ScopePointer& scope);
  Value of_filter(const Expression& node, const ScopePointer& scope);
  Value of_test(const Expression& node, const ScopePointer& scope);
  Value of_binary(const Expression& node, const ScopePointer& scope);
  Value of_logic(const Expression& node, const ScopePointer& scope);
  Arguments arguments_of(const Expression& node, const ScopePointer& scope);

  Budget& budget_;
  TextBuilder out_;
  Surroundings around_;
  int open_ = 0;  // nodes and macros that have not ended
};

}  // namespace llama::jinja
