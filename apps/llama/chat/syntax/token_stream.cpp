#include "apps/llama/chat/syntax/token_stream.hpp"

#include "apps/llama/chat/values/problem.hpp"

namespace llama::jinja {
namespace {

std::string described(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the template";
  if (token.kind == Token::Kind::kData) return "text";
  if (token.kind == Token::Kind::kString) return "a string";
  return "'" + token.text + "'";
}

}  // namespace

bool TokenStream::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  next();
  return true;
}

bool TokenStream::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

void TokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_for("'" + std::string(text) + "'");
}

void TokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_for("'" + std::string(text) + "'");
}

std::string TokenStream::expect_name() {
  if (!is(Token::Kind::kName)) fail_for("a name");
  return next().text;
}

void TokenStream::expect(Token::Kind kind) {
  if (!is(kind))
    fail_for(kind == Token::Kind::kBlockEnd ? "'%}'" : kind == Token::Kind::kOutputEnd ? "'}}'" : "something else");
  next();
}

void TokenStream::fail(const std::string& what) const { throw TemplateError(line(), Problem(what)); }

void TokenStream::fail_for(const std::string& wanted) const { fail("expects " + wanted + ", and finds " + described(now())); }

}  // namespace llama::jinja
