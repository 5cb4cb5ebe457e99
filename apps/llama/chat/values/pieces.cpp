#include "apps/llama/chat/values/pieces.hpp"

#include <algorithm>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/items.hpp"

namespace llama::jinja {
namespace {

Value piece(Budget& budget, std::string_view text) {
  budget.spend(4);
  return TextBuilder(budget).add(text).take();
}

std::size_t word_size(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && leading_space(text.substr(size, character_size(text.substr(size)))) == 0)
    size += character_size(text.substr(size));
  return size;
}

void check_separator(std::string_view separator) {
  if (separator.empty()) throw Problem("splits a string by an empty one");
}

}  // namespace

Values words_of(Budget& budget, std::string_view text, std::int64_t most) {
  budget.spend_text(text.size());
  Values words;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    const bool is_last = most >= 0 && std::ssize(words) == most;
    const std::size_t size = is_last ? text.size() : word_size(text);
    words.push_back(piece(budget, text.substr(0, size)));
    text.remove_prefix(size);
  }
  return words;
}

Values words_from_right(Budget& budget, std::string_view text, std::int64_t most) {
  Values all = words_of(budget, text, -1);
  if (most < 0 || std::ssize(all) <= most) return all;
  text = strip_right(text);
  for (std::int64_t i = 0; i < most; ++i) {
    text.remove_suffix(all[all.size() - 1 - static_cast<std::size_t>(i)].text().size());
    text = strip_right(text);
  }
  Values words{piece(budget, text)};
  words.insert(words.end(), all.end() - most, all.end());
  return words;
}

Values parts_of(Budget& budget, std::string_view text, std::string_view separator, std::int64_t most) {
  check_separator(separator);
  budget.spend_search(text.size(), separator.size());
  Values parts;
  while (most < 0 || std::ssize(parts) < most) {
    const std::size_t at = text.find(separator);
    if (at == text.npos) break;
    parts.push_back(piece(budget, text.substr(0, at)));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(piece(budget, text));
  return parts;
}

Values parts_from_right(Budget& budget, std::string_view text, std::string_view separator, std::int64_t most) {
  check_separator(separator);
  budget.spend_search(text.size(), separator.size());
  Values parts;
  while (most < 0 || std::ssize(parts) < most) {
    const std::size_t at = text.rfind(separator);
    if (at == text.npos) break;
    parts.push_back(piece(budget, text.substr(at + separator.size())));
    text = text.substr(0, at);
  }
  parts.push_back(piece(budget, text));
  std::ranges::reverse(parts);
  return parts;
}

Values lines_of(Budget& budget, std::string_view text, bool keep_ends) {
  budget.spend_text(text.size());
  Values lines;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find_first_of("\n\r"), text.size());
    const std::size_t end = text.substr(at).starts_with("\r\n") ? 2 : at < text.size() ? 1 : 0;
    lines.push_back(piece(budget, text.substr(0, keep_ends ? at + end : at)));
    text.remove_prefix(at + end);
  }
  return lines;
}

std::string replaced(Budget& budget, std::string_view text, std::string_view old, std::string_view with, std::int64_t most) {
  budget.spend_search(text.size(), old.size());
  TextBuilder out(budget);
  for (; most != 0; --most) {
    const std::size_t at = text.find(old);
    if (at == text.npos) break;
    out.add(text.substr(0, at)).add(with);
    text.remove_prefix(at);
    if (!old.empty()) {
      text.remove_prefix(old.size());
    } else if (text.empty()) {
      return out.take();
    } else {  // Python puts `with` before each character, and behind the last
      out.add(text.substr(0, character_size(text)));
      text.remove_prefix(character_size(text));
    }
  }
  return out.add(text).take();
}

std::string joined_texts(Budget& budget, const Value& elements, std::string_view separator) {
  TextBuilder out(budget);
  bool first = true;
  for (const Value& element : items_of(budget, elements)) {
    if (!element.is_text()) throw Problem(std::string("joins ") + kind_of(element) + " to a string");
    if (!first) out.add(separator);
    out.add(element.text());
    first = false;
  }
  return out.take();
}

}  // namespace llama::jinja
