// Expressions of a template, by Jinja's precedence.
#pragma once

#include "apps/llama/chat/syntax/node.hpp"
#include "apps/llama/chat/syntax/token_stream.hpp"

namespace llama::jinja {

/// All of them throw TemplateError for what is no expression, and for expressions that are nested deeper than 128 levels.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Expression expression();           // a condition if there is one
  Expression expression_or_tuple();  // also "a, b"
  Expression without_condition();    // what a loop goes over: an "if" behind it is the loop's
  Expression filters_of(Expression inner);
  Expression filter(Expression inner);  // one, behind its '|'

 private:
  using Kind = Expression::Kind;
  using Rule = Expression (ExpressionParser::*)();

  Expression choice();
  Expression either();
  Expression both();
  Expression negation();
  Expression comparison();
  Expression sum();
  Expression concatenation();
  Expression product();
  Expression power();
  Expression unary();
  Expression signed_operand();
  Expression primary();
  Expression name_or_constant();
  Expression number();
  Expression string();
  Expression in_parentheses();
  Expression list();
  Expression dict();
  Expression with_suffixes(Expression node);
  Expression attribute(Expression node);
  Expression subscript(Expression node);
  Expression call(Expression node);
  Expression test(Expression node);
  bool begins_test_argument() const;
  std::string dotted_name();
  void arguments(Expression& node);
  Expression unpacked();
  Expression binary(Rule operand, std::initializer_list<const char*> operators);
  Expression make(Kind kind, std::vector<Expression> children, std::string name = "");
  void update_depth(Expression& node) const;

  TokenStream& tokens_;
  int open_ = 0;  // rules that call themselves and have not ended
};

}  // namespace llama::jinja
