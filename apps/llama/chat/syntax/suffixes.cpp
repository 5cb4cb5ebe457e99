// What follows a value in an expression: attributes, items, calls, filters and tests.
#include "apps/llama/chat/syntax/expression_parser.hpp"

namespace llama::jinja {

Expression ExpressionParser::with_suffixes(Expression node) {
  while (true) {
    if (tokens_.skip_operator(".")) node = attribute(std::move(node));
    else if (tokens_.skip_operator("[")) node = subscript(std::move(node));
    else if (tokens_.skip_operator("(")) node = call(std::move(node));
    else return node;
  }
}

Expression ExpressionParser::attribute(Expression node) {
  std::vector<Expression> children;
  children.push_back(std::move(node));
  if (!tokens_.is(Token::Kind::kInteger)) return make(Kind::kAttribute, std::move(children), tokens_.expect_name());
  children.push_back(number());
  return make(Kind::kItem, std::move(children));
}

/// [item], [begin:end], [begin:end:step]; what is left out is none.
Expression ExpressionParser::subscript(Expression node) {
  std::vector<Expression> parts;
  parts.push_back(std::move(node));
  const auto part = [&] {
    Expression none{.kind = Kind::kLiteral, .line = tokens_.line(), .value = None()};
    parts.push_back(tokens_.is_operator(":") || tokens_.is_operator("]") ? std::move(none) : expression());
  };
  if (tokens_.is_operator("]")) tokens_.fail_for("an index");
  part();
  const bool is_slice = tokens_.is_operator(":");
  while (parts.size() < 4 && tokens_.skip_operator(":")) part();
  while (is_slice && parts.size() < 4) parts.push_back({.kind = Kind::kLiteral, .line = tokens_.line(), .value = None()});
  tokens_.expect_operator("]");
  return make(is_slice ? Kind::kSlice : Kind::kItem, std::move(parts));
}

/// Behind "*": a list, each element of which is an argument.
Expression ExpressionParser::unpacked() {
  std::vector<Expression> children;
  children.push_back(expression());
  return make(Kind::kUnpack, std::move(children));
}

/// Up to the closing parenthesis. Those by name come behind all others.
void ExpressionParser::arguments(Expression& node) {
  for (bool first = true; !tokens_.skip_operator(")"); first = false) {
    if (!first) tokens_.expect_operator(",");
    if (tokens_.skip_operator(")")) break;
    if (tokens_.skip_operator("**")) {
      node.names.push_back(kUnpackNamed);
      node.children.push_back(expression());
      continue;
    }
    const bool has_name =
        tokens_.is(Token::Kind::kName) && tokens_.ahead().kind == Token::Kind::kOperator && tokens_.ahead().text == "=";
    if (!has_name && !node.names.empty()) tokens_.fail("has an argument without a name behind one with a name");
    if (has_name) node.names.push_back(tokens_.next().text), tokens_.next();
    node.children.push_back(tokens_.skip_operator("*") ? unpacked() : expression());
  }
  update_depth(node);
}

Expression ExpressionParser::call(Expression node) {
  std::vector<Expression> children;
  children.push_back(std::move(node));
  Expression made = make(Kind::kCall, std::move(children));
  arguments(made);
  return made;
}

Expression ExpressionParser::filters_of(Expression node) {
  while (true) {
    if (tokens_.skip_operator("|")) node = filter(std::move(node));
    else if (tokens_.skip_name("is")) node = test(std::move(node));
    else if (tokens_.skip_operator("(")) node = call(std::move(node));
    else return node;
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_name();
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect_name();
  return name;
}

Expression ExpressionParser::filter(Expression node) {
  std::vector<Expression> children;
  children.push_back(std::move(node));
  Expression made = make(Kind::kFilter, std::move(children), dotted_name());
  if (tokens_.skip_operator("(")) arguments(made);
  return made;
}

bool ExpressionParser::begins_test_argument() const {
  if (tokens_.is(Token::Kind::kName))
    return !tokens_.is_name("else") && !tokens_.is_name("or") && !tokens_.is_name("and") && !tokens_.is_name("is");
  return tokens_.is(Token::Kind::kString) || tokens_.is(Token::Kind::kInteger) || tokens_.is(Token::Kind::kFloat) ||
         tokens_.is_operator("[") || tokens_.is_operator("{");
}

/// "is equalto 'a'" is as good as "is equalto('a')".
Expression ExpressionParser::test(Expression node) {
  const bool is_not = tokens_.skip_name("not");
  std::vector<Expression> children;
  children.push_back(std::move(node));
  Expression made = make(Kind::kTest, std::move(children), dotted_name());
  if (tokens_.skip_operator("(")) {
    arguments(made);
  } else if (begins_test_argument()) {
    made.children.push_back(with_suffixes(primary()));
    update_depth(made);
  }
  if (tokens_.is_name("is")) tokens_.fail("has a test behind a test");
  if (!is_not) return made;
  std::vector<Expression> inner;
  inner.push_back(std::move(made));
  return make(Kind::kNot, std::move(inner));
}

}  // namespace llama::jinja
