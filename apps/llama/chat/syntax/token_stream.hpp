// Tokens one after the other, for the parsers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/chat/syntax/lexer.hpp"

namespace llama::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return now().line; }
  Token next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }

  bool is(Token::Kind kind) const { return now().kind == kind; }
  bool is_operator(std::string_view text) const { return is(Token::Kind::kOperator) && now().text == text; }
  bool is_name(std::string_view text) const { return is(Token::Kind::kName) && now().text == text; }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);

  // They throw TemplateError where something else stands.
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  std::string expect_name();
  void expect(Token::Kind kind);

  [[noreturn]] void fail(const std::string& what) const;
  /// "expects <wanted>, and finds <what stands here>".
  [[noreturn]] void fail_for(const std::string& wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace llama::jinja
