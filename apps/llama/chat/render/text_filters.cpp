#include "apps/llama/chat/render/text_filters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/items.hpp"
#include "apps/llama/chat/values/operators.hpp"
#include "apps/llama/chat/values/pieces.hpp"
#include "apps/llama/chat/values/print.hpp"

namespace llama::jinja {
namespace {

std::string text_of(const Applied& call) { return printed(call.budget, call.input); }

Value trim(const Applied& call) {
  const Given given = call.given({"chars"});
  const std::string text = text_of(call);
  if (!given.find(0) || given.at(0).is<None>()) return std::string(strip(text));
  const std::string set = given.text(0);
  call.budget.spend_search(text.size(), 64 * set.size());
  return std::string(strip_left(strip_right(text, set), set));
}

Value string(const Applied& call) {
  call.given({});
  return text_of(call);
}

Value upper(const Applied& call) {
  call.given({});
  return to_upper(text_of(call));
}

Value lower(const Applied& call) {
  call.given({});
  return to_lower(text_of(call));
}

Value capitalize(const Applied& call) {
  call.given({});
  return capitalized(text_of(call));
}

/// Words begin behind whitespace, hyphens and opening brackets, as Jinja has it: "it's" has one.
Value title(const Applied& call) {
  call.given({});
  const auto begins = [](char previous) {
    return std::string_view(" \t\n\r\f\v-({[<").find(previous) != std::string_view::npos;
  };
  return titled(text_of(call), begins);
}

Value length(const Applied& call) {
  call.given({});
  if (call.input.is_text()) call.budget.spend_text(call.input.text().size());
  return length_of(call.input);
}

Value replace(const Applied& call) {
  const Given given = call.given({"old", "new", "count"}, 2);
  const std::string old = printed(call.budget, given.at(0)), with = printed(call.budget, given.at(1));
  return replaced(call.budget, text_of(call), old, with, given.integer(2, -1));
}

/// All elements as texts, with `d` between them.
Value join(const Applied& call) {
  const Given given = call.given({"d", "attribute"});
  const std::string separator = given.find(0) ? printed(call.budget, given.at(0)) : "";
  TextBuilder out(call.budget);
  bool first = true;
  for (const Value& item : items_of(call.budget, call.input)) {
    if (!first) out.add(separator);
    out.add(printed(call.budget, given.find(1) ? at_path(call.budget, item, given.at(1)) : item));
    first = false;
  }
  return out.take();
}

Value indent(const Applied& call) {
  const Given given = call.given({"width", "first", "blank"});
  const bool has_text = given.find(0) && given.at(0).is_text();
  const std::int64_t width = has_text ? 0 : given.integer(0, 4);
  if (width > 1024) throw Problem("indents by more than 1024 characters");
  const std::string space =
      has_text ? given.text(0) : std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  const Values lines = parts_of(call.budget, text_of(call), "\n", -1);
  TextBuilder out(call.budget);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.add("\n");
    const bool is_wanted = i == 0 ? given.flag(1, false) : given.flag(2, false) || !lines[i].text().empty();
    if (is_wanted) out.add(space);
    out.add(lines[i].text());
  }
  return out.take();
}

Value tojson(const Applied& call) {
  const Given given = call.given({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{.ascii = given.flag(0, false), .sorted = given.flag(3, false)};
  if (given.find(1) && !given.at(1).is<None>()) {
    const std::int64_t spaces = given.integer(1, 0);
    if (spaces > 16) throw Problem("writes JSON with an indent of more than 16 spaces");
    style.indent = static_cast<int>(std::max<std::int64_t>(spaces, 0));
    style.item_end = ",";
  }
  if (given.find(2) && given.at(2).is_list()) {
    const Values& pair = given.at(2).list().items;
    if (pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text())
      throw Problem("writes JSON with separators that are no two strings");
    style.item_end = pair[0].text();
    style.key_end = pair[1].text();
  }
  return json_of(call.budget, call.input, style);
}

/// What Python's int() and float() read: a number with whitespace around it.
template <class T>
bool read_number(std::string_view text, T& number) {
  text = strip(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

Value whole(double number, const Value& absent) {
  if (!(std::abs(number) < 0x1p63)) return absent;
  return static_cast<std::int64_t>(number);
}

Value to_integer(const Applied& call) {
  const Given given = call.given({"default", "base"});
  const Value absent = given.find(0) ? given.at(0) : Value(std::int64_t{0});
  if (call.input.is_integer()) return call.input.integer();
  if (call.input.is<double>()) return whole(call.input.number(), absent);
  std::int64_t integer = 0;
  double number = 0;
  if (!call.input.is_text()) return absent;
  if (read_number(call.input.text(), integer)) return integer;
  return read_number(call.input.text(), number) ? whole(number, absent) : absent;
}

Value to_float(const Applied& call) {
  const Given given = call.given({"default"});
  if (call.input.is_number()) return call.input.number();
  double number = 0;
  if (call.input.is_text() && read_number(call.input.text(), number)) return number;
  return given.find(0) ? given.at(0) : Value(0.0);
}

Value abs(const Applied& call) {
  call.given({});
  if (!call.input.is_number()) throw Problem(std::string("asks for the absolute value of ") + kind_of(call.input));
  const bool is_negative = call.input.number() < 0;
  if (call.input.is_integer()) return is_negative ? negated(call.input) : Value(call.input.integer());
  return std::abs(call.input.number());
}

/// Half to even, as Python rounds. An integer stays one.
Value round(const Applied& call) {
  const Given given = call.given({"precision", "method"});
  if (!call.input.is_number()) throw Problem(std::string("rounds ") + kind_of(call.input));
  const double scale = std::pow(10.0, static_cast<double>(std::clamp<std::int64_t>(given.integer(0, 0), -300, 300)));
  const double scaled = call.input.number() * scale;
  const std::string method = given.text(1, "common");
  if (method == "common" && call.input.is_integer() && given.integer(0, 0) >= 0) return call.input.integer();
  if (method == "ceil") return std::ceil(scaled) / scale;
  return (method == "floor" ? std::floor(scaled) : std::nearbyint(scaled)) / scale;
}

constexpr Filter kTextFilters[] = {
    {"trim", trim},     {"string", string},  {"safe", string},
    {"upper", upper},   {"lower", lower},    {"capitalize", capitalize},
    {"title", title},   {"length", length},  {"count", length},
    {"join", join},     {"indent", indent},  {"replace", replace},
    {"tojson", tojson}, {"int", to_integer}, {"float", to_float},
    {"abs", abs},       {"round", round},
};

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  const auto found = std::ranges::find(kTextFilters, name, &Filter::name);
  return found == std::end(kTextFilters) ? nullptr : found;
}

}  // namespace llama::jinja
