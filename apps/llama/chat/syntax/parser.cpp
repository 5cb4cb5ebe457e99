#include "apps/llama/chat/syntax/parser.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "apps/llama/chat/syntax/expression_parser.hpp"

namespace llama::jinja {
namespace {

using Kind = Statement::Kind;

constexpr int kMostBlocks = 64;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)), expressions_(tokens_) {}

  Body all() {
    Body body = statements({});
    if (tokens_.is(Token::Kind::kBlockBegin)) {
      tokens_.next();
      tokens_.fail("has {% " + tokens_.now().text + " %} without its beginning");
    }
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;
  using Rule = Statement (Parser::*)(Statement);

  bool ends_here(Ends ends) const {
    return tokens_.is(Token::Kind::kBlockBegin) && std::ranges::find(ends, tokens_.ahead().text) != ends.end();
  }

  /// Up to a block whose word is one of `ends`; of none, to the end of the template.
  Body statements(Ends ends) {
    Body body;
    while (!ends_here(ends) && !tokens_.is(Token::Kind::kEnd)) {
      if (tokens_.is(Token::Kind::kBlockBegin) && tokens_.ahead().text.starts_with("e") && is_end(tokens_.ahead().text)) break;
      body.push_back(statement());
    }
    return body;
  }
  static bool is_end(std::string_view word) { return word.starts_with("end") || word == "else" || word == "elif"; }

  Statement statement() {
    const int line = tokens_.line();
    if (tokens_.is(Token::Kind::kData)) return {.kind = Kind::kText, .line = line, .text = tokens_.next().text};
    if (tokens_.is(Token::Kind::kBlockBegin)) return block();
    tokens_.expect(Token::Kind::kOutputBegin);
    Statement output{.kind = Kind::kOutput, .line = line};
    output.expressions.push_back(expressions_.expression_or_tuple());
    tokens_.expect(Token::Kind::kOutputEnd);
    return output;
  }

  Statement block() {
    static constexpr std::pair<std::string_view, Rule> kRules[] = {{"for", &Parser::loop},
                                                                   {"if", &Parser::branch},
                                                                   {"set", &Parser::set},
                                                                   {"macro", &Parser::macro},
                                                                   {"call", &Parser::call},
                                                                   {"filter", &Parser::filter},
                                                                   {"generation", &Parser::generation},
                                                                   {"break", &Parser::loop_break},
                                                                   {"continue", &Parser::loop_break}};
    tokens_.next();
    const int line = tokens_.line();
    const auto found = std::ranges::find(kRules, tokens_.now().text, &std::pair<std::string_view, Rule>::first);
    if (!tokens_.is(Token::Kind::kName) || found == std::end(kRules)) refuse_block();
    if (++blocks_ > kMostBlocks) tokens_.fail("nests blocks deeper than " + std::to_string(kMostBlocks) + " levels");
    Statement made = (this->*found->second)({.line = line});
    --blocks_;
    return made;
  }

  [[noreturn]] void refuse_block() const {
    if (!tokens_.is(Token::Kind::kName)) tokens_.fail_for("the word of a block");
    tokens_.fail("uses {% " + tokens_.now().text +
                 " %}, which is not known here: for, if, set, macro, call, filter, generation, break, continue and raw are");
  }

  /// The body of a block up to its end, which goes with it.
  Body body_up_to(std::string_view end) {
    tokens_.expect(Token::Kind::kBlockEnd);
    Body body = statements({end});
    end_block(end);
    return body;
  }
  void end_block(std::string_view end) {
    if (!tokens_.is(Token::Kind::kBlockBegin)) tokens_.fail_for("{% " + std::string(end) + " %}");
    tokens_.next();
    tokens_.expect_name(end);
    tokens_.expect(Token::Kind::kBlockEnd);
  }

  std::vector<std::string> names() {
    const bool has_parentheses = tokens_.skip_operator("(");
    std::vector<std::string> all{target_name()};
    while (tokens_.skip_operator(",") && tokens_.is(Token::Kind::kName) && !tokens_.is_name("in")) all.push_back(target_name());
    if (has_parentheses) tokens_.expect_operator(")");
    return all;
  }
  std::string target_name() {
    static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::ranges::find(kConstants, tokens_.now().text) != std::end(kConstants))
      tokens_.fail("gives a value to '" + tokens_.now().text + "', which is a constant");
    return tokens_.expect_name();
  }

  Statement loop(Statement made) {
    tokens_.next();
    made.kind = Kind::kLoop;
    made.target.names = names();
    tokens_.expect_name("in");
    made.expressions.push_back(expressions_.without_condition());
    if (tokens_.is_operator(",")) tokens_.fail("loops over values without parentheses around them");
    if (tokens_.skip_name("if")) made.expressions.push_back(expressions_.expression());
    if (tokens_.is_name("recursive")) tokens_.fail("has a recursive loop, which is not known here");
    tokens_.expect(Token::Kind::kBlockEnd);
    ++loops_;
    made.bodies.push_back(statements({"else", "endfor"}));
    --loops_;
    if (ends_here({"else"})) {
      end_block("else");
      made.bodies.push_back(statements({"endfor"}));
    }
    end_block("endfor");
    return made;
  }

  Statement branch(Statement made) {
    made.kind = Kind::kBranch;
    do {
      tokens_.next();  // if, or elif
      made.expressions.push_back(expressions_.expression_or_tuple());
      tokens_.expect(Token::Kind::kBlockEnd);
      made.bodies.push_back(statements({"elif", "else", "endif"}));
      if (!ends_here({"elif"})) break;
      tokens_.next();
    } while (true);
    if (ends_here({"else"})) {
      end_block("else");
      made.bodies.push_back(statements({"endif"}));
    }
    end_block("endif");
    return made;
  }

  Statement set(Statement made) {
    tokens_.next();
    made.target.names = names();
    if (tokens_.skip_operator(".")) made.target.member = tokens_.expect_name();
    if (tokens_.skip_operator("=")) {
      made.kind = Kind::kSet;
      made.expressions.push_back(expressions_.expression_or_tuple());
      tokens_.expect(Token::Kind::kBlockEnd);
      return made;
    }
    made.kind = Kind::kSetBlock;
    made.expressions.push_back(expressions_.filters_of({.kind = Expression::Kind::kName, .line = tokens_.line()}));
    made.bodies.push_back(body_up_to("endset"));
    return made;
  }

  /// A macro's body is called from elsewhere: no loop around it is its own.
  Statement macro(Statement made) {
    tokens_.next();
    made.kind = Kind::kMacro;
    made.text = target_name();
    tokens_.expect_operator("(");
    parameters(made);
    const int loops = std::exchange(loops_, 0);
    made.bodies.push_back(body_up_to("endmacro"));
    loops_ = loops;
    return made;
  }
  void parameters(Statement& made) {
    while (!tokens_.skip_operator(")")) {
      if (!made.names.empty()) tokens_.expect_operator(",");
      made.names.push_back(target_name());
      if (tokens_.skip_operator("=")) made.expressions.push_back(expressions_.expression());
      else if (!made.expressions.empty()) tokens_.fail("has a parameter without a default behind one that has one");
    }
  }

  /// {% call(parameters) macro(arguments) %}.
  Statement call(Statement made) {
    tokens_.next();
    made.kind = Kind::kCall;
    Statement caller{.kind = Kind::kMacro, .line = made.line, .text = kCaller};
    if (tokens_.skip_operator("(")) parameters(caller);
    made.expressions.push_back(expressions_.expression());
    if (made.expressions[0].kind != Expression::Kind::kCall) tokens_.fail("has {% call %} without a call of a macro");
    const int loops = std::exchange(loops_, 0);
    caller.bodies.push_back(body_up_to("endcall"));
    loops_ = loops;
    made.bodies.emplace_back().push_back(std::move(caller));
    return made;
  }

  Statement filter(Statement made) {
    tokens_.next();
    made.kind = Kind::kFilter;
    Expression first = expressions_.filter({.kind = Expression::Kind::kName, .line = tokens_.line()});
    made.expressions.push_back(expressions_.filters_of(std::move(first)));
    const int loops = std::exchange(loops_, 0);
    made.bodies.push_back(body_up_to("endfilter"));
    loops_ = loops;
    return made;
  }

  /// What the model writes, for who trains one: a scope of its own, as Hugging Face's extension has it.
  Statement generation(Statement made) {
    tokens_.next();
    made.kind = Kind::kScope;
    const int loops = std::exchange(loops_, 0);
    made.bodies.push_back(body_up_to("endgeneration"));
    loops_ = loops;
    return made;
  }

  Statement loop_break(Statement made) {
    const std::string word = tokens_.next().text;
    if (loops_ == 0) tokens_.fail("has {% " + word + " %} outside of a loop");
    made.kind = word == "break" ? Kind::kBreak : Kind::kContinue;
    tokens_.expect(Token::Kind::kBlockEnd);
    return made;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int blocks_ = 0;  // that are open
  int loops_ = 0;
};

}  // namespace

Body parse_template(std::string_view source) { return Parser(source).all(); }

}  // namespace llama::jinja
