// A value of a template, with Python's semantics: what a variable, an expression or a part of a conversation is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/llama/chat/values/budget.hpp"

namespace llama::jinja {

struct List;
struct Dict;
struct Namespace;
class Callable;

struct None {};
/// What a name or a key that there is not gives. It prints as nothing; most other uses are errors, which say `what`.
struct Undefined {
  std::shared_ptr<const std::string> what;
};

/// Copies are cheap: texts, lists and dictionaries are shared, and never change.
class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                               std::shared_ptr<const Dict>, std::shared_ptr<const Callable>, Namespace*>;

  Value() = default;  // undefined
  Value(Undefined why) : held_(std::move(why)) {}
  Value(None none) : held_(none) {}
  Value(bool flag) : held_(flag) {}
  Value(std::int64_t number) : held_(number) {}
  Value(double number) : held_(number) {}
  Value(std::string text) : held_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const List> list) : held_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : held_(std::move(dict)) {}
  Value(std::shared_ptr<const Callable> callable) : held_(std::move(callable)) {}
  Value(Namespace* space) : held_(space) {}  // must outlive the value

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(held_);
  }
  bool is_text() const { return is<Text>(); }
  bool is_list() const { return is<std::shared_ptr<const List>>(); }
  bool is_dict() const { return is<std::shared_ptr<const Dict>>(); }
  bool is_callable() const { return is<std::shared_ptr<const Callable>>(); }
  bool is_integer() const { return is<bool>() || is<std::int64_t>(); }  // as in Python, where True is 1
  bool is_number() const { return is_integer() || is<double>(); }

  // Of what is_text(), is_list() and so on say that it is.
  const std::string& text() const { return *std::get<Text>(held_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(held_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(held_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(held_); }
  Namespace* space() const { return std::get<Namespace*>(held_); }
  std::int64_t integer() const { return is<bool>() ? std::get<bool>(held_) : std::get<std::int64_t>(held_); }
  double number() const { return is<double>() ? std::get<double>(held_) : static_cast<double>(integer()); }

  const Variant& held() const { return held_; }

 private:
  Variant held_;
};

using Values = std::vector<Value>;
struct Entry {
  Value key, value;
};

struct List {
  Values items;
  bool is_tuple = false;
  int depth = 1;  // of lists and dictionaries inside one another
};

/// In the order in which keys were added. No key stands twice.
struct Dict {
  std::vector<Entry> entries;
  int depth = 1;

  const Value* find(std::string_view key) const;
  /// Texts, numbers and none are keys, nothing else is.
  const Value* find(Budget& budget, const Value& key) const;
};

/// What namespace() gives: the one thing that a template may change. The rendering owns it.
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;

  Value* find(std::string_view name);
  void set(const std::string& name, Value value);
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Callable {
 public:
  explicit Callable(std::string name) : name_(std::move(name)) {}
  virtual ~Callable() = default;
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  const std::string& name() const { return name_; }
  virtual Value call(Budget& budget, const Arguments& arguments) const = 0;

 private:
  std::string name_;
};

Value undefined(const std::string& what);  // "'x' is undefined"

/// Throws Problem where values are nested deeper than 100 levels: who walks them calls itself.
Value make_list(Budget& budget, Values items, bool is_tuple = false);
/// Of two equal keys the last value counts, in the place of the first.
Value make_dict(Budget& budget, std::vector<Entry> entries);

/// As Python has it: no, nothing, zero and what is empty are false.
bool is_true(const Value& value);
/// "a list", for messages.
const char* kind_of(const Value& value);
/// Throws Problem for an undefined value, which `use` says what for: "cannot be called".
void check_defined(const Value& value, const std::string& use);

}  // namespace llama::jinja
