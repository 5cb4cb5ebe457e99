#include "apps/llama/chat/render/list_filters.hpp"

#include <algorithm>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/items.hpp"
#include "apps/llama/chat/values/operators.hpp"

namespace llama::jinja {
namespace {

Values all_of(const Applied& call) { return items_of(call.budget, call.input); }
/// Jinja's map and select take what is false, such as none, for an empty list.
Values any_of(const Applied& call) { return is_true(call.input) ? all_of(call) : Values(); }

Value fallback(const Applied& call) {
  const Given given = call.given({"default_value", "boolean"});
  const bool is_missing = call.input.is<Undefined>() || (given.flag(1, false) && !is_true(call.input));
  if (!is_missing) return call.input;
  return given.find(0) ? given.at(0) : Value("");
}

Value first(const Applied& call) {
  call.given({});
  const Values items = all_of(call);
  return items.empty() ? undefined("No first item, sequence was empty") : items.front();
}

Value last(const Applied& call) {
  call.given({});
  const Values items = all_of(call);
  return items.empty() ? undefined("No last item, sequence was empty") : items.back();
}

Value list(const Applied& call) {
  call.given({});
  return make_list(call.budget, all_of(call));
}

Value items(const Applied& call) {
  call.given({});
  if (call.input.is<Undefined>()) return make_list(call.budget, {});
  if (!call.input.is_dict())
    throw Problem(std::string("asks for the items of ") + kind_of(call.input) + ", which is no mapping");
  Values pairs;
  for (const auto& [key, value] : call.input.dict().entries) pairs.push_back(make_list(call.budget, {key, value}, true));
  return make_list(call.budget, std::move(pairs));
}

Value reverse(const Applied& call) {
  call.given({});
  if (call.input.is_text()) return slice_of(call.budget, call.input, None(), None(), std::int64_t{-1});
  Values items = all_of(call);
  std::ranges::reverse(items);
  return make_list(call.budget, std::move(items));
}

/// Texts in lower case, unless case counts.
Value sort_key(const Applied& call, const Value& item, const Value* attribute, bool case_counts) {
  const Value key = attribute && !attribute->is<None>() ? at_path(call.budget, item, *attribute) : item;
  if (case_counts || !key.is_text()) return key;
  call.budget.spend_text(key.text().size());
  return to_lower(key.text());
}

struct Keyed {
  Value key, item;
};

/// A stable merge of two halves: an order that contradicts itself only gives an odd result.
void sort_by_key(Budget& budget, std::vector<Keyed>& all, bool reversed) {
  std::vector<Keyed> merged;
  for (std::size_t width = 1; width < all.size(); width *= 2) {
    merged.clear();
    for (std::size_t low = 0; low < all.size(); low += 2 * width) {
      std::size_t left = low, right = std::min(low + width, all.size());
      const std::size_t middle = right, high = std::min(low + 2 * width, all.size());
      while (left < middle || right < high) {
        const bool takes_right =
            left == middle || (right < high && (reversed ? order_of(budget, all[left].key, all[right].key) < 0
                                                         : order_of(budget, all[right].key, all[left].key) < 0));
        merged.push_back(all[takes_right ? right++ : left++]);
      }
    }
    all.swap(merged);
  }
}

Value sorted(Budget& budget, std::vector<Keyed> all, bool reversed) {
  sort_by_key(budget, all, reversed);
  Values items;
  for (Keyed& one : all) items.push_back(std::move(one.item));
  return make_list(budget, std::move(items));
}

Value sort(const Applied& call) {
  const Given given = call.given({"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> all;
  for (const Value& item : all_of(call)) all.push_back({sort_key(call, item, given.find(2), given.flag(1, false)), item});
  return sorted(call.budget, std::move(all), given.flag(0, false));
}

Value dictsort(const Applied& call) {
  const Given given = call.given({"case_sensitive", "by", "reverse"});
  const std::string by = given.text(1, "key");
  if (by != "key" && by != "value") throw Problem("sorts a mapping by '" + by + "': by 'key' or 'value' it can");
  std::vector<Keyed> all;
  const Value pairs = items({call.budget, call.name, call.input, {}});
  for (const Value& pair : pairs.list().items) {
    const Value& key = pair.list().items[by == "key" ? 0 : 1];
    all.push_back({sort_key(call, key, nullptr, given.flag(0, false)), pair});
  }
  return sorted(call.budget, std::move(all), given.flag(2, false));
}

Value unique(const Applied& call) {
  const Given given = call.given({"case_sensitive", "attribute"});
  Values kept, keys;
  for (const Value& item : all_of(call)) {
    const Value key = sort_key(call, item, given.find(1), given.flag(0, false));
    if (std::ranges::any_of(keys, [&](const Value& old) { return equal(call.budget, old, key); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return make_list(call.budget, std::move(kept));
}

/// map(attribute="name", default=...), or map("filter", arguments...).
Value map(const Applied& call) {
  Values mapped;
  const bool by_attribute = call.arguments.positional.empty();
  const Arguments none;
  const Given given(call.name, by_attribute ? call.arguments : none, {"attribute", "default"});
  if (by_attribute && !given.find(0)) throw Problem("'map' needs the name of a filter, or attribute=");
  Arguments rest = call.arguments;
  if (!by_attribute) rest.positional.erase(rest.positional.begin());
  for (const Value& item : any_of(call)) {
    if (by_attribute) {
      const Value found = at_path(call.budget, item, given.at(0));
      mapped.push_back(found.is<Undefined>() && given.find(1) ? given.at(1) : found);
    } else {
      if (!call.arguments.positional[0].is_text()) throw Problem("'map' needs the name of a filter as a string");
      mapped.push_back(filtered(call.budget, call.arguments.positional[0].text(), item, rest));
    }
  }
  return make_list(call.budget, std::move(mapped));
}

/// select("test", arguments...) and those like it; without a test, what is true.
template <bool kByAttribute, bool kWanted>
Value select(const Applied& call) {
  Arguments rest = call.arguments;
  const auto take = [&](const char* what) {
    if (rest.positional.empty()) throw Problem("'" + call.name + "' needs the name of " + what);
    const Value taken = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return taken;
  };
  const Value attribute = kByAttribute ? take("an attribute") : Value();
  const Value test = rest.positional.empty() ? Value() : take("a test");
  if (!test.is<Undefined>() && !test.is_text()) throw Problem("'" + call.name + "' needs the name of a test as a string");
  Values kept;
  for (const Value& item : any_of(call)) {
    const Value tested = kByAttribute ? at_path(call.budget, item, attribute) : item;
    const bool passed = test.is_text() ? passes(call.budget, test.text(), tested, rest) : is_true(tested);
    if (passed == kWanted) kept.push_back(item);
  }
  return make_list(call.budget, std::move(kept));
}

constexpr Filter kListFilters[] = {
    {"default", fallback},
    {"d", fallback},
    {"first", first},
    {"last", last},
    {"list", list},
    {"items", items},
    {"reverse", reverse},
    {"sort", sort},
    {"unique", unique},
    {"map", map},
    {"dictsort", dictsort},
    {"select", select<false, true>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<true, false>},
};

}  // namespace

const Filter* find_list_filter(std::string_view name) {
  const auto found = std::ranges::find(kListFilters, name, &Filter::name);
  return found == std::end(kListFilters) ? nullptr : found;
}

}  // namespace llama::jinja
