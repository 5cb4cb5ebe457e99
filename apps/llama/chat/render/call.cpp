#include "apps/llama/chat/render/call.hpp"

#include <algorithm>

#include "apps/llama/chat/render/list_filters.hpp"
#include "apps/llama/chat/render/text_filters.hpp"
#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/operators.hpp"

namespace llama::jinja {
namespace {

const Filter* find_filter(std::string_view name) {
  const Filter* const found = find_text_filter(name);
  return found ? found : find_list_filter(name);
}

bool is_space_or_empty(std::string_view text) { return strip(text).empty(); }

/// No letter of the other case, and one at least of this.
bool has_case(const Applied& call, bool upper) {
  if (!call.input.is_text()) return false;
  const std::string& text = call.input.text();
  call.budget.spend_text(text.size());
  return !is_space_or_empty(text) && text == (upper ? to_upper(text) : to_lower(text)) && to_upper(text) != to_lower(text);
}

bool is_same(const Applied& call, const Value& other) {
  if (call.input.held().index() != other.held().index()) return false;
  if (call.input.is_list()) return &call.input.list() == &other.list();
  if (call.input.is_dict()) return &call.input.dict() == &other.dict();
  return equal(call.budget, call.input, other);
}

std::int64_t remainder_of(const Applied& call, std::int64_t divisor) {
  if (!call.input.is_integer()) throw Problem(std::string("asks what divides ") + kind_of(call.input));
  return combined(call.budget, "%", call.input, divisor).integer();
}

using Test = bool (*)(const Applied&);
struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr NamedTest kPlainTests[] = {
    {"defined", [](const Applied& call) { return !call.input.is<Undefined>(); }},
    {"undefined", [](const Applied& call) { return call.input.is<Undefined>(); }},
    {"none", [](const Applied& call) { return call.input.is<None>(); }},
    {"string", [](const Applied& call) { return call.input.is_text(); }},
    {"mapping", [](const Applied& call) { return call.input.is_dict(); }},
    {"number", [](const Applied& call) { return call.input.is_number(); }},
    {"integer", [](const Applied& call) { return call.input.is<std::int64_t>(); }},
    {"float", [](const Applied& call) { return call.input.is<double>(); }},
    {"boolean", [](const Applied& call) { return call.input.is<bool>(); }},
    {"true", [](const Applied& call) { return call.input.is<bool>() && is_true(call.input); }},
    {"false", [](const Applied& call) { return call.input.is<bool>() && !is_true(call.input); }},
    {"callable", [](const Applied& call) { return call.input.is_callable(); }},
    {"upper", [](const Applied& call) { return has_case(call, true); }},
    {"lower", [](const Applied& call) { return has_case(call, false); }},
    {"odd", [](const Applied& call) { return remainder_of(call, 2) == 1; }},
    {"even", [](const Applied& call) { return remainder_of(call, 2) == 0; }},
    {"filter", [](const Applied& call) { return call.input.is_text() && is_filter(call.input.text()); }},
    {"test", [](const Applied& call) { return call.input.is_text() && is_test(call.input.text()); }},
};

bool has_elements(const Value& value) {
  return value.is_text() || value.is_list() || value.is_dict() || value.is<Undefined>();  // an undefined value has none of them
}

struct Comparison {
  std::string_view name, operation;
};
constexpr Comparison kComparisons[] = {
    {"==", "=="},         {"eq", "=="},      {"equalto", "=="}, {"!=", "!="}, {"ne", "!="}, {"<", "<"},
    {"lt", "<"},          {"lessthan", "<"}, {"<=", "<="},      {"le", "<="}, {">", ">"},   {"gt", ">"},
    {"greaterthan", ">"}, {">=", ">="},      {"ge", ">="},      {"in", "in"},
};

bool is_of_elements(std::string_view name) { return name == "iterable" || name == "sequence"; }

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

bool is_test(std::string_view name) {
  return is_of_elements(name) || name == "sameas" || name == "divisibleby" ||
         std::ranges::find(kPlainTests, name, &NamedTest::name) != std::end(kPlainTests) ||
         std::ranges::find(kComparisons, name, &Comparison::name) != std::end(kComparisons);
}

Value filtered(Budget& budget, const std::string& name, const Value& input, const Arguments& arguments) {
  const Filter* const filter = find_filter(name);
  if (!filter) throw Problem("uses the filter '" + name.substr(0, 64) + "', which is not known here");
  return filter->function({budget, name, input, arguments});
}

bool passes(Budget& budget, const std::string& name, const Value& input, const Arguments& arguments) {
  const Applied call{budget, name, input, arguments};
  const auto plain = std::ranges::find(kPlainTests, name, &NamedTest::name);
  const auto comparison = std::ranges::find(kComparisons, name, &Comparison::name);
  if (!is_test(name)) throw Problem("uses the test '" + name.substr(0, 64) + "', which is not known here");
  if (plain != std::end(kPlainTests) || is_of_elements(name)) {
    call.given({});
    return is_of_elements(name) ? has_elements(input) : plain->test(call);
  }
  const Given given = call.given({"other"}, 1);
  if (name == "sameas") return is_same(call, given.at(0));
  if (name == "divisibleby") return remainder_of(call, given.integer(0, 1)) == 0;
  return compared(budget, comparison->operation, input, given.at(0));
}

}  // namespace llama::jinja
