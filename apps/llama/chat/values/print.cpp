#include "apps/llama/chat/values/print.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/checkpoint/tokenizer/utf8.hpp"

namespace llama::jinja {
namespace {

/// The digits of a positive number that make it again, and the power of ten of the first.
struct Digits {
  std::string digits;
  int exponent;
};

Digits digits_of(double number) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific);
  const std::string_view all(text.data(), static_cast<std::size_t>(end.ptr - text.data()));
  const std::size_t at = all.find('e');
  Digits found{std::string(all.substr(0, at)), 0};
  std::erase(found.digits, '.');
  const std::size_t sign = all[at + 1] == '+' ? 2 : 1;
  std::from_chars(all.data() + at + sign, all.data() + all.size(), found.exponent);
  return found;
}

/// repr() of a float: an exponent below 1e-4 and from 1e16 on.
std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::signbit(number)) return "-" + float_text(-number);
  if (std::isinf(number)) return "inf";
  auto [digits, exponent] = digits_of(number);
  if (exponent < -4 || exponent >= 16) {
    char power[16];
    std::snprintf(power, sizeof power, "e%+03d", exponent);
    return digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "") + power;
  }
  if (exponent < 0) return "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0') + ".0";
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string escape_of(const char* format, std::uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, format, code);
  return text;
}

/// repr() of a string: in single quotes, unless it has those and no double ones.
void add_quoted(TextBuilder& out, std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.add({&quote, 1});
  for (const std::string_view character : characters_of(text)) {
    const auto code = static_cast<unsigned char>(character.front());
    if (character == "\n") out.add("\\n");
    else if (character == "\r") out.add("\\r");
    else if (character == "\t") out.add("\\t");
    else if (character == "\\" || character == std::string_view(&quote, 1)) out.add("\\").add(character);
    else if (code < 0x20 || code == 0x7f) out.add(escape_of("\\x%02x", code));
    else out.add(character);
  }
  out.add({&quote, 1});
}

void add_printed(TextBuilder& out, const Value& value, bool quotes);

void add_list(TextBuilder& out, const List& list) {
  out.add(list.is_tuple ? "(" : "[");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.add(", ");
    add_printed(out, list.items[i], true);
  }
  if (list.is_tuple) out.add(list.items.size() == 1 ? ",)" : ")");
  else out.add("]");
}

void add_dict(TextBuilder& out, const Dict& dict) {
  out.add("{");
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out.add(", ");
    add_printed(out, dict.entries[i].key, true);
    out.add(": ");
    add_printed(out, dict.entries[i].value, true);
  }
  out.add("}");
}

void add_printed(TextBuilder& out, const Value& value, bool quotes) {
  if (value.is_text() && quotes) add_quoted(out, value.text());
  else if (value.is_text()) out.add(value.text());
  else if (value.is<Undefined>()) out.add(quotes ? "Undefined" : "");
  else if (value.is<None>()) out.add("None");
  else if (value.is<bool>()) out.add(value.integer() ? "True" : "False");
  else if (value.is<std::int64_t>()) out.add(std::to_string(value.integer()));
  else if (value.is<double>()) out.add(float_text(value.number()));
  else if (value.is_list()) add_list(out, value.list());
  else if (value.is_dict()) add_dict(out, value.dict());
  else out.add(value.is_callable() ? "<function " + value.callable().name() + ">" : "<Namespace>");
}

class JsonWriter {
 public:
  JsonWriter(TextBuilder& out, const JsonStyle& style) : out_(out), style_(style) {}

  void add(const Value& value, int level) {
    if (value.is_text()) return add_text(value.text());
    if (value.is_list()) return add_all(value.list(), level);
    if (value.is_dict()) return add_all(value.dict(), level);
    if (value.is<None>()) out_.add("null");
    else if (value.is<bool>()) out_.add(value.integer() ? "true" : "false");
    else if (value.is<std::int64_t>()) out_.add(std::to_string(value.integer()));
    else if (value.is<double>()) out_.add(json_float(value.number()));
    else throw Problem(std::string("asks for the JSON of ") + kind_of(value) + ", which has none");
  }

 private:
  static std::string json_float(double number) {
    if (std::isnan(number)) return "NaN";
    return std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity") : float_text(number);
  }

  void add_escaped(std::string_view character) {
    static constexpr std::pair<char, const char*> kShort[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"},
                                                              {'\t', "\\t"}, {'\b', "\\b"},  {'\f', "\\f"}};
    for (const auto& [byte, escape] : kShort)
      if (byte == character.front()) return void(out_.add(escape));
    const auto byte = static_cast<unsigned char>(character.front());
    if (byte < 0x20) out_.add(escape_of("\\u%04x", byte));
    else if (style_.ascii && byte >= 0x80) add_units(read_utf8(character).code_point);
    else out_.add(character);
  }

  /// As UTF-16, which JSON's escapes are.
  void add_units(std::uint32_t code) {
    if (code < 0x10000) return void(out_.add(escape_of("\\u%04x", code)));
    out_.add(escape_of("\\u%04x", 0xd800 + ((code - 0x10000) >> 10)));
    out_.add(escape_of("\\u%04x", 0xdc00 + ((code - 0x10000) & 0x3ff)));
  }

  void add_text(std::string_view text) {
    out_.add("\"");
    while (!text.empty()) {
      const std::size_t size = character_size(text);
      add_escaped(text.substr(0, size));
      text.remove_prefix(size);
    }
    out_.add("\"");
  }

  void begin_item(bool first, int level) {
    if (!first) out_.add(style_.item_end);
    new_line(level);
  }
  void new_line(int level) {
    if (style_.indent < 0) return;
    out_.add("\n").add(std::string(static_cast<std::size_t>(style_.indent) * static_cast<std::size_t>(level), ' '));
  }

  void add_all(const List& list, int level) {
    if (list.items.empty()) return void(out_.add("[]"));
    out_.add("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i == 0, level + 1);
      add(list.items[i], level + 1);
    }
    new_line(level);
    out_.add("]");
  }

  void add_all(const Dict& dict, int level) {
    if (dict.entries.empty()) return void(out_.add("{}"));
    std::vector<Entry> entries = dict.entries;
    const auto key = [](const Entry& entry) { return entry.key.is_text() ? entry.key.text() : std::string(); };
    if (style_.sorted) std::ranges::stable_sort(entries, {}, key);
    out_.add("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      begin_item(i == 0, level + 1);
      add_key(entries[i].key, level);
      out_.add(style_.key_end);
      add(entries[i].value, level + 1);
    }
    new_line(level);
    out_.add("}");
  }

  void add_key(const Value& key, int level) {
    if (key.is_text()) return add_text(key.text());
    out_.add("\"");
    add(key, level);
    out_.add("\"");
  }

  TextBuilder& out_;
  const JsonStyle& style_;
};

}  // namespace

std::string printed(Budget& budget, const Value& value) {
  TextBuilder out(budget);
  add_printed(out, value, false);
  return out.take();
}

std::string json_of(Budget& budget, const Value& value, const JsonStyle& style) {
  TextBuilder out(budget);
  JsonWriter(out, style).add(value, 0);
  return out.take();
}

}  // namespace llama::jinja
