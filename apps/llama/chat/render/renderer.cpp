// The statements of a template.
#include "apps/llama/chat/render/renderer.hpp"

#include "apps/llama/chat/values/arguments.hpp"
#include "apps/llama/chat/values/items.hpp"
#include "apps/llama/chat/values/print.hpp"

namespace llama::jinja {
namespace {

constexpr std::uint64_t kTurnSteps = 40;  // of a loop: what it makes costs as much as so many nodes

}  // namespace

/// A macro sees the names around its definition. It holds them weakly: they may hold the macro.
class Macro final : public Callable {
 public:
  Macro(Renderer& renderer, const Statement& macro, const std::shared_ptr<Scope>& around)
      : Callable(macro.text),
        renderer_(renderer),
        macro_(macro),
        around_(around) {}

  Value call(Budget&, const Arguments& arguments) const override {
    const std::shared_ptr<Scope> around = around_.lock();
    if (!around) throw Problem("calls the macro '" + name() + "' outside of where it is defined");
    return renderer_.call_macro(macro_, around, arguments);
  }

 private:
  Renderer& renderer_;
  const Statement& macro_;
  std::weak_ptr<Scope> around_;
};

std::string Renderer::render(const Body& body, const Names& names) {
  const auto outermost = std::make_shared<Scope>();
  for (const auto& [name, value] : names) outermost->set(budget_, name, value);
  run(body, std::make_shared<Scope>(outermost));
  return out_.take();
}

Renderer::Flow Renderer::run(const Body& body, const ScopePointer& scope) {
  for (const Statement& statement : body) {
    const Level level(open_);
    try {
      budget_.spend(1);
      const Flow flow = run(statement, scope);
      if (flow != Flow::kOn) return flow;
    } catch (const TemplateError&) {
      throw;
    } catch (const Problem& problem) {
      throw TemplateError(statement.line, problem);
    }
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::run(const Statement& statement, const ScopePointer& scope) {
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::kText:
      out_.add(statement.text);
      break;
    case Kind::kOutput:
      out_.add(printed(budget_, evaluate(statement.expressions[0], scope)));
      break;
    case Kind::kLoop:
      return run_loop(statement, scope);
    case Kind::kBranch:
      return run_branch(statement, scope);
    case Kind::kSet:
      assign(statement.target, evaluate(statement.expressions[0], scope), scope);
      break;
    case Kind::kSetBlock:
      assign(statement.target, filtered_body(statement, scope), scope);
      break;
    case Kind::kMacro:
      define_macro(statement, scope);
      break;
    case Kind::kScope:
      run(statement.bodies[0], std::make_shared<Scope>(scope));
      break;
    case Kind::kCall:
      run_call(statement, scope);
      break;
    case Kind::kFilter:
      out_.add(printed(budget_, filtered_body(statement, scope)));
      break;
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::run_branch(const Statement& statement, const ScopePointer& scope) {
  for (std::size_t i = 0; i < statement.expressions.size(); ++i)
    if (is_true(evaluate(statement.expressions[i], scope))) return run(statement.bodies[i], scope);
  const bool has_else = statement.bodies.size() > statement.expressions.size();
  return has_else ? run(statement.bodies.back(), scope) : Flow::kOn;
}

/// Those that pass the loop's own condition, which sees the names of the loop.
Values Renderer::loop_items(const Statement& statement, const ScopePointer& scope) {
  Values all = items_of(budget_, evaluate(statement.expressions[0], scope));
  if (statement.expressions.size() == 1) return all;
  Values kept;
  for (Value& item : all) {
    const auto inner = std::make_shared<Scope>(scope);
    assign_names(statement.target.names, item, inner);
    if (is_true(evaluate(statement.expressions[1], inner))) kept.push_back(std::move(item));
  }
  return kept;
}

/// What `loop` is in turn `i`.
Value Renderer::loop_state(const Values& items, std::size_t i) {
  const auto number = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  const std::size_t count = items.size();
  static const Value kIndex("index"), kIndex0("index0"), kFirst("first"), kLast("last"), kLength("length"), kLeft("revindex"),
      kLeft0("revindex0"), kBefore("previtem"), kNext("nextitem");  // shared by all turns of all loops
  std::vector<Entry> entries{{kIndex, number(i + 1)},        {kIndex0, number(i)},     {kFirst, i == 0},
                             {kLast, i + 1 == count},        {kLength, number(count)}, {kLeft, number(count - i)},
                             {kLeft0, number(count - i - 1)}};
  if (i > 0) entries.push_back({kBefore, items[i - 1]});
  if (i + 1 < count) entries.push_back({kNext, items[i + 1]});
  return std::make_shared<const Dict>(Dict{std::move(entries)});
}

Renderer::Flow Renderer::run_loop(const Statement& statement, const ScopePointer& scope) {
  const Values items = loop_items(statement, scope);
  for (std::size_t i = 0; i < items.size(); ++i) {
    budget_.spend(kTurnSteps);
    const auto inner = std::make_shared<Scope>(scope);
    assign_names(statement.target.names, items[i], inner);
    inner->set(budget_, "loop", loop_state(items, i));
    if (run(statement.bodies[0], inner) == Flow::kBreak) break;
  }
  const bool runs_else = items.empty() && statement.bodies.size() > 1;
  return runs_else ? run(statement.bodies[1], std::make_shared<Scope>(scope)) : Flow::kOn;
}

void Renderer::define_macro(const Statement& statement, const ScopePointer& scope) {
  std::shared_ptr<const Callable> macro = std::make_shared<const Macro>(*this, statement, scope);
  scope->set(budget_, statement.text, std::move(macro));
}

void Renderer::assign(const Target& target, const Value& value, const ScopePointer& scope) {
  if (target.member.empty()) return assign_names(target.names, value, scope);
  const Value* const found = scope->find(budget_, target.names[0]);
  if (!found || !found->is<Namespace*>())
    throw Problem("sets '" + target.names[0] + "." + target.member + "', and '" + target.names[0] + "' is no namespace");
  budget_.spend(found->space()->members.size() / 8 + 1);
  found->space()->set(target.member, value);
}

void Renderer::assign_names(const std::vector<std::string>& names, const Value& value, const ScopePointer& scope) {
  if (names.size() == 1) return scope->set(budget_, names[0], value);
  const Values items = items_of(budget_, value);
  if (items.size() != names.size())
    throw Problem("gives " + std::to_string(names.size()) + " names to " + std::to_string(items.size()) + " values");
  for (std::size_t i = 0; i < names.size(); ++i) scope->set(budget_, names[i], items[i]);
}

/// The macro that bodies[0] defines is what the one that is called knows as caller().
void Renderer::run_call(const Statement& statement, const ScopePointer& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  run(statement.bodies[0], inner);
  const Expression& call = statement.expressions[0];
  const Value callee = evaluate(call.children[0], scope);
  if (!callee.is_callable()) throw Problem(std::string("calls ") + kind_of(callee) + ", which is no macro");
  Arguments arguments = arguments_of(call, scope);
  arguments.named.emplace_back(kCaller, *inner->find(budget_, kCaller));
  out_.add(printed(budget_, callee.callable().call(budget_, arguments)));
}

std::string Renderer::captured(const Body& body, const ScopePointer& scope) {
  TextBuilder outer = std::exchange(out_, TextBuilder(budget_));
  run(body, scope);
  return std::exchange(out_, std::move(outer)).take();
}

Value Renderer::filtered_body(const Statement& statement, const ScopePointer& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  Value text = captured(statement.bodies[0], inner);
  inner->set(budget_, "", std::move(text));
  return evaluate(statement.expressions[0], inner);
}

/// A parameter that is not given has its default, which sees the parameters before it, or is undefined.
Value Renderer::call_macro(const Statement& macro, const ScopePointer& around, const Arguments& arguments) {
  const Level level(open_);
  Arguments own = arguments;
  const auto inner = std::make_shared<Scope>(around);
  if (!own.named.empty() && own.named.back().first == kCaller) {
    inner->set(budget_, kCaller, own.named.back().second);
    own.named.pop_back();
  }
  const Given given(macro.text, own, macro.names);
  const std::size_t first_default = macro.names.size() - macro.expressions.size();
  for (std::size_t i = 0; i < macro.names.size(); ++i) {
    Value value = undefined("the argument '" + macro.names[i] + "' was not given");
    if (given.find(i)) value = given.at(i);
    else if (i >= first_default) value = evaluate(macro.expressions[i - first_default], inner);
    inner->set(budget_, macro.names[i], std::move(value));
  }
  return captured(macro.bodies[0], inner);
}

}  // namespace llama::jinja
