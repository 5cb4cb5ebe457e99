// The expressions of a template.
#include "apps/llama/chat/render/call.hpp"
#include "apps/llama/chat/render/renderer.hpp"
#include "apps/llama/chat/values/items.hpp"
#include "apps/llama/chat/values/operators.hpp"

namespace llama::jinja {

namespace {

void unpack_named(const Value& mapping, Arguments& arguments) {
  if (!mapping.is_dict()) throw Problem(std::string("unpacks ") + kind_of(mapping) + " with '**', which is no mapping");
  for (const auto& [key, value] : mapping.dict().entries) {
    if (!key.is_text()) throw Problem(std::string("names an argument by ") + kind_of(key));
    arguments.named.emplace_back(key.text(), value);
  }
}

}  // namespace

/// A problem gets the line of the innermost node that it is met in.
Value Renderer::evaluate(const Expression& node, const ScopePointer& scope) {
  const Level level(open_);
  try {
    budget_.spend(1);
    return evaluated(node, scope);
  } catch (const TemplateError&) {
    throw;
  } catch (const Problem& problem) {
    throw TemplateError(node.line, problem);
  }
}

Value Renderer::evaluated(const Expression& node, const ScopePointer& scope) {
  using Kind = Expression::Kind;
  const auto child = [&](std::size_t i) { return evaluate(node.children[i], scope); };
  switch (node.kind) {
    case Kind::kLiteral:
      return node.value;
    case Kind::kName:
      return of_name(node, scope);
    case Kind::kList:
    case Kind::kTuple:
      return of_list(node, scope);
    case Kind::kDict:
      return of_dict(node, scope);
    case Kind::kAttribute:
      return attribute_of(budget_, child(0), node.name);
    case Kind::kItem:
      return of_item(node, scope);
    case Kind::kSlice:
      return of_slice(node, scope);
    case Kind::kCall:
      return of_call(node, scope);
    case Kind::kFilter:
      return of_filter(node, scope);
    case Kind::kTest:
      return of_test(node, scope);
    case Kind::kNot:
      return !is_true(child(0));
    case Kind::kNegate:
      return negated(child(0));
    case Kind::kBinary:
      return of_binary(node, scope);
    case Kind::kCompare:
      return of_comparison(node, scope);
    case Kind::kAnd:
    case Kind::kOr:
      return of_logic(node, scope);
    case Kind::kUnpack:
      throw Problem("unpacks '*' outside of arguments");
    case Kind::kChoice:
      return child(is_true(child(1)) ? 0 : 2);
  }
  return {};
}

Value Renderer::of_name(const Expression& node, const ScopePointer& scope) {
  const Value* const found = scope->find(budget_, node.name);
  return found ? *found : function_of(node.name, around_);
}

Value Renderer::of_list(const Expression& node, const ScopePointer& scope) {
  Values items;
  for (const Expression& child : node.children) items.push_back(evaluate(child, scope));
  return make_list(budget_, std::move(items), node.kind == Expression::Kind::kTuple);
}

Value Renderer::of_dict(const Expression& node, const ScopePointer& scope) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < node.children.size(); i += 2) {
    Value key = evaluate(node.children[i], scope);
    entries.push_back({std::move(key), evaluate(node.children[i + 1], scope)});
  }
  return make_dict(budget_, std::move(entries));
}

Value Renderer::of_item(const Expression& node, const ScopePointer& scope) {
  const Value value = evaluate(node.children[0], scope);
  return item_of(budget_, value, evaluate(node.children[1], scope));
}

Value Renderer::of_slice(const Expression& node, const ScopePointer& scope) {
  Values parts;
  for (const Expression& child : node.children) parts.push_back(evaluate(child, scope));
  return slice_of(budget_, parts[0], parts[1], parts[2], parts[3]);
}

Arguments Renderer::arguments_of(const Expression& node, const ScopePointer& scope) {
  Arguments arguments;
  const std::size_t first_named = node.children.size() - node.names.size();
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    if (node.children[i].kind == Expression::Kind::kUnpack) {
      for (Value& item : items_of(budget_, evaluate(node.children[i].children[0], scope)))
        arguments.positional.push_back(std::move(item));
      continue;
    }
    Value value = evaluate(node.children[i], scope);
    if (i >= first_named && node.names[i - first_named] == kUnpackNamed) unpack_named(value, arguments);
    else if (i < first_named) arguments.positional.push_back(std::move(value));
    else arguments.named.emplace_back(node.names[i - first_named], std::move(value));
  }
  return arguments;
}

Value Renderer::of_call(const Expression& node, const ScopePointer& scope) {
  const Value callee = evaluate(node.children[0], scope);
  check_defined(callee, "cannot be called");
  if (!callee.is_callable()) throw Problem(std::string("calls ") + kind_of(callee) + ", which is no function");
  return callee.callable().call(budget_, arguments_of(node, scope));
}

Value Renderer::of_filter(const Expression& node, const ScopePointer& scope) {
  const Value input = evaluate(node.children[0], scope);
  return filtered(budget_, node.name, input, arguments_of(node, scope));
}

Value Renderer::of_test(const Expression& node, const ScopePointer& scope) {
  const Value input = evaluate(node.children[0], scope);
  return passes(budget_, node.name, input, arguments_of(node, scope));
}

Value Renderer::of_binary(const Expression& node, const ScopePointer& scope) {
  const Value left = evaluate(node.children[0], scope);
  return combined(budget_, node.name, left, evaluate(node.children[1], scope));
}

/// `a < b < c`: each operand is evaluated once, and none behind the first comparison that fails.
Value Renderer::of_comparison(const Expression& node, const ScopePointer& scope) {
  Value left = evaluate(node.children[0], scope);
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(node.children[i + 1], scope);
    if (!compared(budget_, node.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

/// The value that decides, not whether it is true.
Value Renderer::of_logic(const Expression& node, const ScopePointer& scope) {
  Value left = evaluate(node.children[0], scope);
  const bool decides = is_true(left) == (node.kind == Expression::Kind::kOr);
  return decides ? left : evaluate(node.children[1], scope);
}

}  // namespace llama::jinja
