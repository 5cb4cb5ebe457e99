#include "apps/llama/chat/values/methods.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "apps/llama/chat/values/arguments.hpp"
#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/pieces.hpp"

namespace llama::jinja {
namespace {

/// A call of a method: on what, and with what.
struct Call {
  Budget& budget;
  const std::string& name;
  const Value& self;
  const Arguments& arguments;

  std::string_view text() const { return self.text(); }
  Given given(const std::vector<std::string>& names, std::size_t required = 0) const {
    return Given(name, arguments, names, required);
  }
};
using Method = Value (*)(const Call&);

Value text_value(const Call& call, std::string_view text) { return TextBuilder(call.budget).add(text).take(); }

template <auto kPlain, auto kOfSet>
std::string_view stripped(std::string_view text, const Given& given) {
  return given.find(0) && !given.at(0).is<None>() ? kOfSet(text, given.text(0)) : kPlain(text);
}
std::string_view strip_all(std::string_view text, std::string_view set) { return strip_left(strip_right(text, set), set); }

using Plain = std::string_view (*)(std::string_view);
using OfSet = std::string_view (*)(std::string_view, std::string_view);

template <Plain kPlain, OfSet kOfSet>
Value strip_method(const Call& call) {
  const Given given = call.given({"chars"});
  call.budget.spend_search(call.text().size(), given.find(0) ? 64 * given.text(0).size() : 0);
  return text_value(call, stripped<kPlain, kOfSet>(call.text(), given));
}

template <bool kFromRight>
Value split_method(const Call& call) {
  const Given given = call.given({"sep", "maxsplit"});
  const std::int64_t most = given.integer(1, -1);
  Values parts;
  if (!given.find(0) || given.at(0).is<None>()) {
    parts = kFromRight ? words_from_right(call.budget, call.text(), most) : words_of(call.budget, call.text(), most);
  } else {
    const std::string separator = given.text(0);
    parts = kFromRight ? parts_from_right(call.budget, call.text(), separator, most)
                       : parts_of(call.budget, call.text(), separator, most);
  }
  return make_list(call.budget, std::move(parts));
}

Value lines_method(const Call& call) {
  const Given given = call.given({"keepends"});
  return make_list(call.budget, lines_of(call.budget, call.text(), given.flag(0, false)));
}

bool has_end(std::string_view text, const Value& end, bool at_front) {
  if (!end.is_text()) throw Problem(std::string("asks whether a string begins or ends with ") + kind_of(end));
  return at_front ? text.starts_with(end.text()) : text.ends_with(end.text());
}

template <bool kAtFront>
Value end_method(const Call& call) {
  const Given given = call.given({kAtFront ? "prefix" : "suffix"}, 1);
  if (!given.at(0).is_list()) return has_end(call.text(), given.at(0), kAtFront);
  const auto fits = [&](const Value& end) { return has_end(call.text(), end, kAtFront); };
  call.budget.spend(given.at(0).list().items.size());
  return std::ranges::any_of(given.at(0).list().items, fits);
}

template <bool kAtFront>
Value remove_method(const Call& call) {
  const std::string end = call.given({kAtFront ? "prefix" : "suffix"}, 1).text(0);
  std::string_view text = call.text();
  if (!has_end(text, end, kAtFront)) return call.self;
  kAtFront ? text.remove_prefix(end.size()) : text.remove_suffix(end.size());
  return text_value(call, text);
}

Value replace_method(const Call& call) {
  const Given given = call.given({"old", "new", "count"}, 2);
  return replaced(call.budget, call.text(), given.text(0), given.text(1), given.integer(2, -1));
}

template <bool kFromRight>
Value find_method(const Call& call) {
  const std::string part = call.given({"sub"}, 1).text(0);
  call.budget.spend_search(call.text().size(), part.size());
  const std::size_t at = kFromRight ? call.text().rfind(part) : call.text().find(part);
  if (at == std::string_view::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(count_characters(call.text().substr(0, at)));
}

Value count_method(const Call& call) {
  const std::string part = call.given({"sub"}, 1).text(0);
  if (part.empty()) return static_cast<std::int64_t>(count_characters(call.text())) + 1;
  return std::ssize(parts_of(call.budget, call.text(), part, -1)) - 1;
}

Value join_method(const Call& call) {
  const Given given = call.given({"iterable"}, 1);
  return joined_texts(call.budget, given.at(0), call.text());
}

template <auto kChange>
Value case_method(const Call& call) {
  call.given({});
  call.budget.spend_text(call.text().size());
  return kChange(call.text());
}
std::string titled_words(std::string_view text) {
  return titled(text, [](char previous) { return !std::isalpha(static_cast<unsigned char>(previous)); });
}

template <auto kIs>
Value are_all(const Call& call) {
  call.given({});
  const auto is = [](char byte) { return kIs(static_cast<unsigned char>(byte)) != 0; };
  return !call.text().empty() && std::ranges::all_of(call.text(), is);
}

Value get_method(const Call& call) {
  const Given given = call.given({"key", "default"}, 1);
  if (const Value* const found = call.self.dict().find(call.budget, given.at(0))) return *found;
  return given.find(1) ? given.at(1) : Value(None());
}

template <bool kKeys, bool kValues>
Value entries_method(const Call& call) {
  call.given({});
  Values all;
  for (const auto& [key, value] : call.self.dict().entries) {
    if (kKeys && kValues) all.push_back(make_list(call.budget, {key, value}, true));
    else all.push_back(kKeys ? key : value);
  }
  return make_list(call.budget, std::move(all));
}

Value refuse_change(const Call& call) {
  throw Problem("calls '" + call.name + "', which would change " + kind_of(call.self) +
                ": a template may change namespaces alone");
}

struct Named {
  std::string_view name;
  Method method;
};

constexpr Named kTextMethods[] = {
    {"strip", strip_method<strip, strip_all>},
    {"lstrip", strip_method<strip_left, strip_left>},
    {"rstrip", strip_method<strip_right, strip_right>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", lines_method},
    {"startswith", end_method<true>},
    {"endswith", end_method<false>},
    {"removeprefix", remove_method<true>},
    {"removesuffix", remove_method<false>},
    {"replace", replace_method},
    {"find", find_method<false>},
    {"rfind", find_method<true>},
    {"count", count_method},
    {"join", join_method},
    {"upper", case_method<to_upper>},
    {"lower", case_method<to_lower>},
    {"capitalize", case_method<capitalized>},
    {"title", case_method<titled_words>},
    {"isdigit", are_all<::isdigit>},
    {"isalpha", are_all<::isalpha>},
    {"isalnum", are_all<::isalnum>},
};
constexpr Named kDictMethods[] = {
    {"get", get_method},
    {"items", entries_method<true, true>},
    {"keys", entries_method<true, false>},
    {"values", entries_method<false, true>},
    {"pop", refuse_change},
    {"popitem", refuse_change},
    {"update", refuse_change},
    {"setdefault", refuse_change},
    {"clear", refuse_change},
};
constexpr Named kListMethods[] = {
    {"append", refuse_change}, {"extend", refuse_change},  {"insert", refuse_change}, {"pop", refuse_change},
    {"remove", refuse_change}, {"reverse", refuse_change}, {"sort", refuse_change},   {"clear", refuse_change},
};

class BoundMethod final : public Callable {
 public:
  BoundMethod(const Named& named, Value self)
      : Callable(std::string(named.name)),
        method_(named.method),
        self_(std::move(self)) {}

  Value call(Budget& budget, const Arguments& arguments) const override { return method_({budget, name(), self_, arguments}); }

 private:
  Method method_;
  Value self_;
};

template <std::size_t kSize>
std::optional<Value> bound_method(const Named (&methods)[kSize], const Value& self, const std::string& name) {
  const auto found = std::ranges::find(methods, name, &Named::name);
  if (found == std::end(methods)) return std::nullopt;
  return Value(std::shared_ptr<const Callable>(std::make_shared<const BoundMethod>(*found, self)));
}

}  // namespace

std::optional<Value> method_of(const Value& value, const std::string& name) {
  if (value.is_text()) return bound_method(kTextMethods, value, name);
  if (value.is_dict()) return bound_method(kDictMethods, value, name);
  if (value.is_list()) return bound_method(kListMethods, value, name);
  return std::nullopt;
}

}  // namespace llama::jinja
