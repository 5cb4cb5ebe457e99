#include "apps/llama/chat/values/operators.hpp"

#include <algorithm>
#include <cmath>

#include "apps/llama/chat/values/items.hpp"
#include "apps/llama/chat/values/print.hpp"

namespace llama::jinja {
namespace {

[[noreturn]] void refuse_kinds(std::string_view name, const Value& a, const Value& b) {
  const std::string use = "'" + std::string(name) + "' cannot take it";
  check_defined(a, use);
  check_defined(b, use);
  throw Problem("'" + std::string(name) + "' cannot take " + kind_of(a) + " and " + kind_of(b));
}

std::int64_t checked(bool overflows, std::int64_t number) {
  if (overflows) throw Problem("computes an integer beyond 64 bits");
  return number;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &result);
  return checked(overflows, result);
}

std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  checked(a == INT64_MIN && b == -1, 0);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) result = product(result, base);
  return result;
}

Value of_integers(std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (name == "+") return checked(__builtin_add_overflow(a, b, &result), 0), result;
  if (name == "-") return checked(__builtin_sub_overflow(a, b, &result), 0), result;
  if (name == "*") return product(a, b);
  if (name == "//") return floor_division(a, b);
  if (name == "%") return remainder(a, b);
  return power(a, b);
}

Value of_floats(std::string_view name, double a, double b) {
  if (name == "+") return a + b;
  if (name == "-") return a - b;
  if (name == "*") return a * b;
  if (name == "/") return a / b;
  if (name == "//") return std::floor(a / b);
  if (name == "**") return std::pow(a, b);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value of_numbers(std::string_view name, const Value& a, const Value& b) {
  const bool divides = name == "/" || name == "//" || name == "%";
  if ((divides || (name == "**" && a.number() == 0 && b.number() < 0)) && (divides ? b.number() == 0 : true))
    throw Problem("divides by zero");
  const bool to_float = name == "/" || (name == "**" && b.number() < 0);
  if (a.is_integer() && b.is_integer() && !to_float) return of_integers(name, a.integer(), b.integer());
  return of_floats(name, a.number(), b.number());
}

Value repeated(Budget& budget, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (value.is_text()) {
    TextBuilder text(budget);
    for (std::size_t i = 0; i < count; ++i) text.add(value.text());
    return text.take();
  }
  Values items;
  for (std::size_t i = 0; i < count; ++i) {
    budget.spend(4 * value.list().items.size() + 1);
    items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  }
  return make_list(budget, std::move(items), value.list().is_tuple);
}

Value joined(Budget& budget, const Value& a, const Value& b) {
  if (a.is_text()) return TextBuilder(budget).add(a.text()).add(b.text()).take();
  Values items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return make_list(budget, std::move(items), a.list().is_tuple);
}

bool is_row(const Value& value) { return value.is_text() || value.is_list(); }

bool equal_texts(Budget& budget, const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  budget.spend_text(a.size());
  return a == b;
}

bool equal_lists(Budget& budget, const List& a, const List& b) {
  const auto same = [&](const Value& one, const Value& other) { return equal(budget, one, other); };
  return a.is_tuple == b.is_tuple && std::ranges::equal(a.items, b.items, same);
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const Entry& entry) {
    const Value* const other = b.find(budget, entry.key);
    return other && equal(budget, entry.value, *other);
  });
}

int order_of_lists(Budget& budget, const Values& a, const Values& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!equal(budget, a[i], b[i])) return order_of(budget, a[i], b[i]);
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

}  // namespace

Value combined(Budget& budget, std::string_view name, const Value& a, const Value& b) {
  if (name == "~") return TextBuilder(budget).add(printed(budget, a)).add(printed(budget, b)).take();
  if (a.is_number() && b.is_number()) return of_numbers(name, a, b);
  const bool same_rows = (a.is_text() && b.is_text()) || (a.is_list() && b.is_list());
  if (name == "+" && same_rows) return joined(budget, a, b);
  if (name == "*" && is_row(a) && b.is_integer()) return repeated(budget, a, b.integer());
  if (name == "*" && is_row(b) && a.is_integer()) return repeated(budget, b, a.integer());
  refuse_kinds(name, a, b);
}

Value negated(const Value& value) {
  if (value.is<double>()) return -value.number();
  if (!value.is_integer()) refuse_kinds("-", value, value);
  return of_integers("-", 0, value.integer());
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.held().index() != b.held().index()) return false;
  if (a.is_text()) return equal_texts(budget, a.text(), b.text());
  if (a.is_list()) return &a.list() == &b.list() || equal_lists(budget, a.list(), b.list());
  if (a.is_dict()) return &a.dict() == &b.dict() || equal_dicts(budget, a.dict(), b.dict());
  if (a.is_callable()) return &a.callable() == &b.callable();
  return !a.is<Namespace*>() || a.space() == b.space();
}

int order_of(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.is_text() && b.is_text()) {
    budget.spend_text(std::min(a.text().size(), b.text().size()));
    return a.text().compare(b.text());
  }
  if (a.is_list() && b.is_list()) return order_of_lists(budget, a.list().items, b.list().items);
  refuse_kinds("<", a, b);
}

bool contains(Budget& budget, const Value& whole, const Value& part) {
  if (whole.is_text()) {
    if (!part.is_text()) refuse_kinds("in", part, whole);
    budget.spend_search(whole.text().size(), part.text().size());
    return whole.text().find(part.text()) != std::string::npos;
  }
  if (whole.is_dict()) return whole.dict().find(budget, part) != nullptr;
  return std::ranges::any_of(items_of(budget, whole), [&](const Value& item) { return equal(budget, item, part); });
}

bool compared(Budget& budget, std::string_view name, const Value& a, const Value& b) {
  if (name == "==") return equal(budget, a, b);
  if (name == "!=") return !equal(budget, a, b);
  if (name == "in") return contains(budget, b, a);
  if (name == "not in") return !contains(budget, b, a);
  const int order = order_of(budget, a, b);
  if (name == "<") return order < 0;
  if (name == "<=") return order <= 0;
  return name == ">" ? order > 0 : order >= 0;
}

}  // namespace llama::jinja
