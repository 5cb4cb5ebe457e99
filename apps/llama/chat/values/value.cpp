#include "apps/llama/chat/values/value.hpp"

#include <algorithm>

namespace llama::jinja {
namespace {

constexpr int kMostLevels = 100;

int depth_of(const Value& value) {
  if (value.is_list()) return value.list().depth;
  return value.is_dict() ? value.dict().depth : 0;
}

int checked_depth(int inside) {
  if (inside >= kMostLevels)
    throw Problem("nests lists and dictionaries deeper than " + std::to_string(kMostLevels) + " levels");
  return inside + 1;
}

bool same_key(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) return a.text() == b.text();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return a.is<None>() && b.is<None>();
}

void check_key(const Value& key) {
  if (key.is_text() || key.is_number() || key.is<None>()) return;
  throw Problem(std::string("uses ") + kind_of(key) + " as the key of a dictionary");
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  const auto same = [key](const Entry& entry) { return entry.key.is_text() && entry.key.text() == key; };
  const auto found = std::ranges::find_if(entries, same);
  return found == entries.end() ? nullptr : &found->value;
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  budget.spend((entries.size() / 8 + 1) * (key.is_text() ? key.text().size() / 64 + 1 : 1));
  const auto found = std::ranges::find_if(entries, [&](const Entry& entry) { return same_key(entry.key, key); });
  return found == entries.end() ? nullptr : &found->value;
}

Value* Namespace::find(std::string_view name) {
  const auto found = std::ranges::find(members, name, &std::pair<std::string, Value>::first);
  return found == members.end() ? nullptr : &found->second;
}

void Namespace::set(const std::string& name, Value value) {
  if (Value* const old = find(name)) *old = std::move(value);
  else members.emplace_back(name, std::move(value));
}

Value undefined(const std::string& what) { return Undefined{std::make_shared<const std::string>(what)}; }

Value make_list(Budget& budget, Values items, bool is_tuple) {
  budget.spend(4 * items.size() + 1);
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  return std::make_shared<const List>(List{std::move(items), is_tuple, checked_depth(depth)});
}

Value make_dict(Budget& budget, std::vector<Entry> entries) {
  Dict dict;
  int depth = 0;
  for (Entry& entry : entries) {
    budget.spend(8 + dict.entries.size() / 8);  // each is compared with those before it
    check_key(entry.key);
    depth = std::max(depth, depth_of(entry.value));
    const auto same = [&](const Entry& old) { return same_key(old.key, entry.key); };
    const auto old = std::ranges::find_if(dict.entries, same);
    if (old == dict.entries.end()) dict.entries.push_back(std::move(entry));
    else old->value = std::move(entry.value);
  }
  dict.depth = checked_depth(depth);
  return std::make_shared<const Dict>(std::move(dict));
}

bool is_true(const Value& value) {
  if (value.is<bool>() || value.is<std::int64_t>()) return value.integer() != 0;
  if (value.is<double>()) return value.number() != 0;
  if (value.is_text()) return !value.text().empty();
  if (value.is_list()) return !value.list().items.empty();
  if (value.is_dict()) return !value.dict().entries.empty();
  return value.is_callable() || value.is<Namespace*>();
}

const char* kind_of(const Value& value) {
  static constexpr const char* kNames[] = {"an undefined value", "none",   "a boolean", "an integer", "a float",
                                           "a string",           "a list", "a mapping", "a function", "a namespace"};
  return kNames[value.held().index()];
}

void check_defined(const Value& value, const std::string& use) {
  if (!value.is<Undefined>()) return;
  const auto& what = std::get<Undefined>(value.held()).what;
  throw Problem((what ? *what : "a value is undefined") + ", and " + use);
}

}  // namespace llama::jinja
