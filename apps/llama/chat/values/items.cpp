#include "apps/llama/chat/values/items.hpp"

#include <algorithm>
#include <optional>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/methods.hpp"

namespace llama::jinja {
namespace {

std::string named(const Value& key) {
  if (key.is_text()) return "'" + key.text().substr(0, 64) + "'";
  return key.is_integer() ? std::to_string(key.integer()) : kind_of(key);
}

Value missing(const Value& value, const Value& key) { return undefined(std::string(kind_of(value)) + " has no " + named(key)); }

/// Of a sequence of `size`, counted from its end where negative.
std::optional<std::size_t> index_in(std::size_t size, std::int64_t index) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < -count || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

std::optional<Value> found_item(Budget& budget, const Value& value, const Value& key) {
  if (value.is_dict()) {
    const Value* const found = value.dict().find(budget, key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_integer() || !(value.is_list() || value.is_text())) return std::nullopt;
  if (value.is_list()) {
    const auto at = index_in(value.list().items.size(), key.integer());
    return at ? std::optional(value.list().items[*at]) : std::nullopt;
  }
  budget.spend_text(value.text().size());
  const auto characters = characters_of(value.text());
  const auto at = index_in(characters.size(), key.integer());
  return at ? std::optional<Value>(std::string(characters[*at])) : std::nullopt;
}

std::optional<Value> found_member(const Value& value, const std::string& name) {
  if (!value.is<Namespace*>()) return method_of(value, name);
  const Value* const found = value.space()->find(name);
  return found ? std::optional(*found) : std::nullopt;
}

/// The bounds of a slice as Python's slice.indices() has them.
struct Range {
  std::int64_t begin, end, step;
};

std::int64_t bound(const Value& value, std::int64_t count, std::int64_t low, std::int64_t high, std::int64_t absent) {
  if (value.is<None>()) return absent;
  if (!value.is_integer()) throw Problem(std::string("slices by ") + kind_of(value) + ", not by integers");
  std::int64_t at = value.integer();
  if (at < 0) at = at < -count ? low : at + count;
  return std::clamp(at, low, high);
}

Range range_of(std::size_t size, const Value& begin, const Value& end, const Value& step) {
  const auto count = static_cast<std::int64_t>(size);
  if (!step.is<None>() && !step.is_integer()) throw Problem(std::string("slices by steps of ") + kind_of(step));
  const std::int64_t stride = step.is<None>() ? 1 : step.integer();
  if (stride == 0) throw Problem("slices by steps of zero");
  if (stride > 0) return {bound(begin, count, 0, count, 0), bound(end, count, 0, count, count), stride};
  return {bound(begin, count, -1, count - 1, count - 1), bound(end, count, -1, count - 1, -1), stride};
}

template <class Visit>
void each_of(const Range& range, const Visit& visit) {
  const std::int64_t step = range.step;
  for (std::int64_t at = range.begin; step > 0 ? at < range.end : at > range.end;) {
    visit(static_cast<std::size_t>(at));
    const std::int64_t left = range.end - at;
    if (step > 0 ? step >= left : step <= left) return;
    at += step;
  }
}

}  // namespace

Values items_of(Budget& budget, const Value& value) {
  budget.spend(4 * static_cast<std::size_t>(length_of(value)) + 1);
  if (value.is_list()) return value.list().items;
  Values items;
  if (value.is_dict())
    for (const Entry& entry : value.dict().entries) items.push_back(entry.key);
  if (value.is_text())
    for (const std::string_view character : characters_of(value.text())) items.emplace_back(std::string(character));
  return items;
}

std::int64_t length_of(const Value& value) {
  if (value.is_list()) return std::ssize(value.list().items);
  if (value.is_dict()) return std::ssize(value.dict().entries);
  if (value.is_text()) return static_cast<std::int64_t>(count_characters(value.text()));
  if (value.is<Undefined>()) return 0;
  throw Problem(std::string("asks for the elements of ") + kind_of(value) + ", which has none");
}

Value attribute_of(Budget& budget, const Value& value, const std::string& name) {
  check_defined(value, "has no attribute '" + name + "'");
  if (const auto member = found_member(value, name)) return *member;
  return found_item(budget, value, name).value_or(missing(value, name));
}

Value item_of(Budget& budget, const Value& value, const Value& key) {
  check_defined(value, "has no item " + named(key));
  if (const auto item = found_item(budget, value, key)) return *item;
  const auto member = key.is_text() ? found_member(value, key.text()) : std::nullopt;
  return member.value_or(missing(value, key));
}

Value slice_of(Budget& budget, const Value& value, const Value& begin, const Value& end, const Value& step) {
  check_defined(value, "has no slices");
  if (value.is_list()) {
    Values items;
    const auto take = [&](std::size_t at) { items.push_back(value.list().items[at]); };
    each_of(range_of(value.list().items.size(), begin, end, step), take);
    return make_list(budget, std::move(items), value.list().is_tuple);
  }
  if (!value.is_text()) return undefined(std::string(kind_of(value)) + " has no slices");
  budget.spend_text(value.text().size());
  const auto characters = characters_of(value.text());
  std::string text;
  each_of(range_of(characters.size(), begin, end, step), [&](std::size_t at) { text += characters[at]; });
  return text;
}

Value at_path(Budget& budget, const Value& value, const Value& path) {
  if (!path.is_text()) return item_of(budget, value, path);
  Value at = value;
  std::string_view left = path.text();
  while (true) {
    const std::size_t dot = std::min(left.find('.'), left.size());
    const std::string name(left.substr(0, dot));
    const bool is_index = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == name.npos;
    at = item_of(budget, at, is_index ? Value(static_cast<std::int64_t>(std::stoi(name))) : Value(name));
    if (dot == left.size()) return at;
    left.remove_prefix(dot + 1);
  }
}

}  // namespace llama::jinja
