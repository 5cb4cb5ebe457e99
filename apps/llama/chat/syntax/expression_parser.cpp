#include "apps/llama/chat/syntax/expression_parser.hpp"

#include <algorithm>
#include <charconv>

#include "apps/llama/chat/values/problem.hpp"

namespace llama::jinja {
namespace {

constexpr int kMostExpressions = 128;

Expression literal(int line, Value value) {
  return {.kind = Expression::Kind::kLiteral, .line = line, .value = std::move(value)};
}

/// Counts a rule that may call itself, for as long as it is open.
class OpenRule {
 public:
  OpenRule(int& open, const TokenStream& tokens) : open_(open) {
    if (++open_ > kMostExpressions) {
      --open_;
      tokens.fail("nests expressions deeper than " + std::to_string(kMostExpressions) + " levels");
    }
  }
  ~OpenRule() { --open_; }
  OpenRule(const OpenRule&) = delete;
  OpenRule& operator=(const OpenRule&) = delete;

 private:
  int& open_;
};

}  // namespace

void ExpressionParser::update_depth(Expression& node) const {
  for (const Expression& child : node.children) node.depth = std::max(node.depth, child.depth + 1);
  if (node.depth > kMostExpressions)
    tokens_.fail("nests expressions deeper than " + std::to_string(kMostExpressions) + " levels");
}

Expression ExpressionParser::make(Kind kind, std::vector<Expression> children, std::string name) {
  const int line = children.empty() ? tokens_.line() : children.front().line;
  Expression node{.kind = kind, .line = line, .name = std::move(name), .children = std::move(children)};
  update_depth(node);
  return node;
}

Expression ExpressionParser::binary(Rule operand, std::initializer_list<const char*> operators) {
  Expression left = (this->*operand)();
  while (true) {
    const auto found = std::ranges::find_if(operators, [&](const char* name) { return tokens_.is_operator(name); });
    if (found == operators.end()) return left;
    tokens_.next();
    std::vector<Expression> children;
    children.push_back(std::move(left));
    children.push_back((this->*operand)());
    left = make(Kind::kBinary, std::move(children), *found);
  }
}

Expression ExpressionParser::expression() { return choice(); }

Expression ExpressionParser::expression_or_tuple() {
  Expression first = expression();
  if (!tokens_.is_operator(",")) return first;
  std::vector<Expression> children;
  children.push_back(std::move(first));
  while (tokens_.skip_operator(",") && !tokens_.is_operator(")") && !tokens_.is(Token::Kind::kBlockEnd) &&
         !tokens_.is(Token::Kind::kOutputEnd))
    children.push_back(expression());
  return make(Kind::kTuple, std::move(children));
}

Expression ExpressionParser::without_condition() { return either(); }

Expression ExpressionParser::choice() {
  const OpenRule level(open_, tokens_);
  Expression value = either();
  while (tokens_.skip_name("if")) {
    Expression condition = either();
    Expression otherwise = literal(tokens_.line(), Value());
    if (tokens_.skip_name("else")) otherwise = choice();
    std::vector<Expression> children;
    children.push_back(std::move(value));
    children.push_back(std::move(condition));
    children.push_back(std::move(otherwise));
    value = make(Kind::kChoice, std::move(children));
  }
  return value;
}

Expression ExpressionParser::either() {
  Expression left = both();
  while (tokens_.skip_name("or")) {
    std::vector<Expression> children;
    children.push_back(std::move(left));
    children.push_back(both());
    left = make(Kind::kOr, std::move(children));
  }
  return left;
}

Expression ExpressionParser::both() {
  Expression left = negation();
  while (tokens_.skip_name("and")) {
    std::vector<Expression> children;
    children.push_back(std::move(left));
    children.push_back(negation());
    left = make(Kind::kAnd, std::move(children));
  }
  return left;
}

Expression ExpressionParser::negation() {
  if (!tokens_.skip_name("not")) return comparison();
  const OpenRule level(open_, tokens_);
  std::vector<Expression> children;
  children.push_back(negation());
  return make(Kind::kNot, std::move(children));
}

Expression ExpressionParser::comparison() {
  static constexpr const char* kOperators[] = {"==", "!=", "<=", ">=", "<", ">"};
  std::vector<Expression> children;
  std::vector<std::string> names;
  children.push_back(sum());
  while (true) {
    const bool has_operator = std::ranges::any_of(kOperators, [&](const char* name) { return tokens_.is_operator(name); });
    const bool is_not_in = tokens_.is_name("not") && tokens_.ahead().kind == Token::Kind::kName && tokens_.ahead().text == "in";
    if (!has_operator && !is_not_in && !tokens_.is_name("in")) break;
    names.push_back(is_not_in ? "not in" : tokens_.now().text);
    tokens_.next();
    if (is_not_in) tokens_.next();
    children.push_back(sum());
  }
  if (names.empty()) return std::move(children.front());
  Expression node = make(Kind::kCompare, std::move(children));
  node.names = std::move(names);
  return node;
}

Expression ExpressionParser::sum() { return binary(&ExpressionParser::concatenation, {"+", "-"}); }
Expression ExpressionParser::concatenation() { return binary(&ExpressionParser::product, {"~"}); }
Expression ExpressionParser::product() { return binary(&ExpressionParser::power, {"*", "//", "/", "%"}); }
Expression ExpressionParser::power() { return binary(&ExpressionParser::unary, {"**"}); }

Expression ExpressionParser::unary() { return filters_of(signed_operand()); }

/// The operand of a sign takes no filters: "-a|f" filters -a.
Expression ExpressionParser::signed_operand() {
  const bool is_negative = tokens_.is_operator("-");
  if (!is_negative && !tokens_.is_operator("+")) return with_suffixes(primary());
  const OpenRule level(open_, tokens_);
  tokens_.next();
  std::vector<Expression> children;
  children.push_back(signed_operand());
  if (!is_negative) return std::move(children.front());
  return with_suffixes(make(Kind::kNegate, std::move(children)));
}

Expression ExpressionParser::primary() {
  const OpenRule level(open_, tokens_);
  if (tokens_.is(Token::Kind::kName)) return name_or_constant();
  if (tokens_.is(Token::Kind::kString)) return string();
  if (tokens_.is(Token::Kind::kInteger) || tokens_.is(Token::Kind::kFloat)) return number();
  if (tokens_.skip_operator("(")) return in_parentheses();
  if (tokens_.skip_operator("[")) return list();
  if (tokens_.skip_operator("{")) return dict();
  tokens_.fail_for("a value");
}

Expression ExpressionParser::name_or_constant() {
  const Token token = tokens_.next();
  if (token.text == "true" || token.text == "True") return literal(token.line, true);
  if (token.text == "false" || token.text == "False") return literal(token.line, false);
  if (token.text == "none" || token.text == "None") return literal(token.line, None());
  return {.kind = Kind::kName, .line = token.line, .name = token.text};
}

Expression ExpressionParser::number() {
  const Token token = tokens_.now();
  std::int64_t integer = 0;
  double real = 0;
  const char* const end = token.text.data() + token.text.size();
  const bool is_integer = token.kind == Token::Kind::kInteger;
  const auto read =
      is_integer ? std::from_chars(token.text.data(), end, integer) : std::from_chars(token.text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end) tokens_.fail("has a number that is too large: " + token.text.substr(0, 32));
  tokens_.next();
  return literal(token.line, is_integer ? Value(integer) : Value(real));
}

/// Strings that follow one another are one.
Expression ExpressionParser::string() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.is(Token::Kind::kString)) text += tokens_.next().text;
  return literal(line, std::move(text));
}

Expression ExpressionParser::in_parentheses() {
  if (tokens_.skip_operator(")")) return make(Kind::kTuple, {});
  Expression node = expression_or_tuple();
  tokens_.expect_operator(")");
  return node;
}

Expression ExpressionParser::list() {
  std::vector<Expression> children;
  while (!tokens_.skip_operator("]")) {
    if (!children.empty()) tokens_.expect_operator(",");
    if (tokens_.skip_operator("]")) break;
    children.push_back(expression());
  }
  return make(Kind::kList, std::move(children));
}

Expression ExpressionParser::dict() {
  std::vector<Expression> children;
  while (!tokens_.skip_operator("}")) {
    if (!children.empty()) tokens_.expect_operator(",");
    if (tokens_.skip_operator("}")) break;
    children.push_back(expression());
    tokens_.expect_operator(":");
    children.push_back(expression());
  }
  return make(Kind::kDict, std::move(children));
}

}  // namespace llama::jinja
