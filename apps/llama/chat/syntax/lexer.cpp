#include "apps/llama/chat/syntax/lexer.hpp"

#include <algorithm>
#include <cctype>

#include "apps/llama/chat/values/characters.hpp"
#include "apps/llama/chat/values/problem.hpp"

namespace llama::jinja {
namespace {

using TokenKind = Token::Kind;

constexpr std::size_t kLongestTemplate = 256 << 10;
constexpr std::size_t kLongestName = 256;  // names are compared with one another again and again

/// All line breaks are "\n", and the one at the end goes.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool is_pair = source.substr(i, 2) == "\r\n";
    text += source[i] == '\r' ? '\n' : source[i];
    i += is_pair;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_letter(char byte) { return std::isalpha(static_cast<unsigned char>(byte)) != 0 || byte == '_'; }
bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_lines(source)), left_(source_) {
    if (source.size() > kLongestTemplate) fail("is longer than 256 KiB");
  }

  std::vector<Token> take() {
    while (!left_.empty()) data_and_tag();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw TemplateError(line_, Problem(what)); }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  std::string_view skip(std::size_t size) {
    const std::string_view skipped = left_.substr(0, size);
    line_ += static_cast<int>(std::ranges::count(skipped, '\n'));
    left_.remove_prefix(skipped.size());
    return skipped;
  }
  bool skip_if(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    skip(text.size());
    return true;
  }

  /// Where the next tag begins, or the end of the template.
  std::size_t next_tag() const {
    for (std::size_t at = left_.find('{'); at != left_.npos; at = left_.find('{', at + 1))
      if (at + 1 < left_.size() && (left_[at + 1] == '{' || left_[at + 1] == '%' || left_[at + 1] == '#')) return at;
    return left_.size();
  }

  /// Text before a tag, less the whitespace that the tag takes away: all of it with "{%-", what stands in front of a block or
  /// comment on its line without a sign.
  void data_and_tag() {
    const std::string_view data = left_.substr(0, next_tag()), tag = left_.substr(data.size(), 2);
    const char sign = left_.size() > data.size() + 2 ? left_[data.size() + 2] : ' ';
    std::string_view kept = data;
    if (!tag.empty() && sign == '-') kept = strip_right(data);
    else if (!tag.empty() && sign != '+' && tag != "{{") kept = without_indent(data);
    if (!kept.empty()) add(TokenKind::kData, std::string(kept));
    skip(data.size() + tag.size());
    if (tag.empty()) return;
    if (sign == '-' || sign == '+') skip(1);
    if (tag == "{#") comment();
    else if (tag == "{{") output();
    else block();
  }

  std::string_view without_indent(std::string_view data) const {
    const std::size_t line = data.rfind('\n') + 1;  // npos + 1: 0
    if (line == 0 && !at_line_begin_) return data;
    return leading_space(data.substr(line)) == data.size() - line ? data.substr(0, line) : data;
  }

  /// What follows the end of a tag: with "-%}" no whitespace, after a block or comment no line break.
  void after_tag(char sign, bool trims) {
    at_line_begin_ = false;
    if (sign == '-') {
      const std::string_view space = skip(leading_space(left_));
      at_line_begin_ = space.ends_with('\n');
    } else if (trims && sign != '+') {
      at_line_begin_ = skip_if("\n");
    }
  }

  void comment() {
    const std::size_t end = left_.find("#}");
    if (end == left_.npos) fail("has a comment {# without its end #}");
    const char sign = end > 0 && (left_[end - 1] == '-' || left_[end - 1] == '+') ? left_[end - 1] : ' ';
    skip(end + 2);
    after_tag(sign, true);
  }

  void output() {
    add(TokenKind::kOutputBegin, "{{");
    const char sign = inside_of_tag("}}", "{{");
    add(TokenKind::kOutputEnd, "}}");
    after_tag(sign, false);
  }

  void block() {
    if (is_raw()) return raw();
    add(TokenKind::kBlockBegin, "{%");
    const char sign = inside_of_tag("%}", "{%");
    add(TokenKind::kBlockEnd, "%}");
    after_tag(sign, true);
  }

  /// Behind "{%": whether it is the word of a tag, and where what follows it begins.
  static std::size_t behind_word(std::string_view text, std::string_view word) {
    const std::size_t at = leading_space(text);
    return text.substr(at).starts_with(word) ? at + word.size() : 0;
  }
  bool is_raw() const {
    const std::size_t at = behind_word(left_, "raw");
    if (at == 0) return false;
    const std::string_view rest = strip_left(left_.substr(at));
    return rest.starts_with("%}") || rest.starts_with("-%}");
  }

  void raw() {
    skip(left_.find('}') + 1);
    if (source_[source_.size() - left_.size() - 3] == '-') skip(leading_space(left_));
    for (std::size_t at = left_.find("{%"); at != left_.npos; at = left_.find("{%", at + 1)) {
      std::string_view rest = left_.substr(at + 2);
      const char sign = rest.empty() ? ' ' : rest.front();
      if (sign == '-' || sign == '+') rest.remove_prefix(1);
      const std::size_t word = behind_word(rest, "endraw");
      if (word == 0) continue;
      return end_raw(at, sign, rest.substr(word));
    }
    fail("has {% raw %} without its {% endraw %}");
  }

  void end_raw(std::size_t at, char sign, std::string_view rest) {
    const std::string_view data = left_.substr(0, at);
    const std::string_view kept = sign == '-' ? strip_right(data) : sign == '+' ? data : without_indent(data);
    if (!kept.empty()) add(TokenKind::kData, std::string(kept));
    const std::size_t end = rest.find("%}");
    if (end == rest.npos) fail("has {% endraw without its end %}");
    const char end_sign = end > 0 ? rest[end - 1] : ' ';
    skip(left_.size() - rest.size() + end + 2);
    after_tag(end_sign, true);
  }

  /// Tokens up to `end`, which does not count between brackets. Gives the sign in front of it.
  char inside_of_tag(std::string_view end, std::string_view begin) {
    std::string open;  // brackets
    while (true) {
      skip(leading_space(left_));
      if (left_.empty()) fail("has " + std::string(begin) + " without its end " + std::string(end));
      const bool signed_end = (left_[0] == '-' || (left_[0] == '+' && end == "%}")) && left_.substr(1).starts_with(end);
      if (open.empty() && (signed_end || left_.starts_with(end))) {
        const char sign = signed_end ? left_[0] : ' ';
        skip(end.size() + signed_end);
        return sign;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char byte = left_.front();
    if (is_letter(byte)) return name();
    if (is_digit(byte)) return number();
    if (byte == '"' || byte == '\'') return string(byte);
    static constexpr std::string_view kPairs[] = {"**", "//", "==", "!=", "<=", ">="};
    for (const std::string_view pair : kPairs)
      if (left_.starts_with(pair)) return add(TokenKind::kOperator, std::string(skip(2)));
    static constexpr std::string_view kSingle = "+-*/%~<>=.:|,()[]{}";
    if (kSingle.find(byte) == kSingle.npos) fail("has " + shown(left_) + " inside a tag, which is nothing that Jinja knows");
    balance(byte, open);
    add(TokenKind::kOperator, std::string(skip(1)));
  }

  static std::string shown(std::string_view text) {
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && character_size(text) == 1)) return "the byte " + std::to_string(byte);
    return "'" + std::string(text.substr(0, character_size(text))) + "'";
  }

  void balance(char byte, std::string& open) const {
    static constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (kOpen.find(byte) != kOpen.npos) open += byte;
    const std::size_t at = kClose.find(byte);
    if (at == kClose.npos) return;
    if (open.empty() || open.back() != kOpen[at]) fail("has '" + std::string(1, byte) + "' without its beginning");
    open.pop_back();
  }

  void name() {
    const auto end = std::ranges::find_if(left_, [](char byte) { return !is_letter(byte) && !is_digit(byte); });
    const auto size = static_cast<std::size_t>(end - left_.begin());
    if (size > kLongestName) fail("has a name of more than 256 characters");
    add(TokenKind::kName, std::string(skip(size)));
  }

  std::size_t digits_at(std::size_t at) const {
    const auto end = std::find_if(left_.begin() + static_cast<std::ptrdiff_t>(at), left_.end(),
                                  [](char byte) { return !is_digit(byte) && byte != '_'; });
    return static_cast<std::size_t>(end - left_.begin()) - at;
  }
  bool digit_at(std::size_t at) const { return at < left_.size() && is_digit(left_[at]); }

  /// Behind a "." an integer is an index, as in "row.0.1".
  void number() {
    const bool is_index = !tokens_.empty() && tokens_.back().kind == TokenKind::kOperator && tokens_.back().text == ".";
    std::size_t size = digits_at(0);
    bool is_float = false;
    if (!is_index && size < left_.size() && left_[size] == '.' && digit_at(size + 1)) {
      size += 1 + digits_at(size + 1);
      is_float = true;
    }
    if (!is_index && size < left_.size() && (left_[size] == 'e' || left_[size] == 'E')) {
      const std::size_t sign = size + 1 < left_.size() && (left_[size + 1] == '+' || left_[size + 1] == '-');
      if (digit_at(size + 1 + sign)) {
        size += 1 + sign + digits_at(size + 1 + sign);
        is_float = true;
      }
    }
    std::string text(skip(size));
    std::erase(text, '_');
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, text);
  }

  void string(char quote) {
    std::size_t end = 1;
    while (end < left_.size() && left_[end] != quote) end += left_[end] == '\\' ? 2 : 1;
    if (end >= left_.size()) fail("has a string without its end");
    add(TokenKind::kString, without_escapes(left_.substr(1, end - 1)));
    skip(end + 1);
  }

  std::string source_;
  std::string_view left_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool at_line_begin_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).take(); }

}  // namespace llama::jinja
