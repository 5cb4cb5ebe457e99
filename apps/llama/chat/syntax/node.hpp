// A template as a tree: expressions, and statements that hold them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

struct Expression {
  enum class Kind : std::uint8_t {
    kLiteral,    // value
    kName,       // name
    kList,       // children
    kTuple,      // children
    kDict,       // children: a key, its value, the next key and so on
    kAttribute,  // child.name
    kItem,       // child[child]
    kSlice,      // child[child:child:child]
    kCall,       // child(children)
    kFilter,     // child|name(children)
    kTest,       // child is name(children)
    kNot,
    kNegate,
    kBinary,   // child name child
    kCompare,  // child names[0] child names[1] child ...
    kAnd,
    kOr,
    kChoice,  // child if child else child
    kUnpack,  // *child, among arguments
  };
  Kind kind = Kind::kLiteral;
  int line = 0;
  int depth = 1;  // of expressions inside one another
  std::string name{};
  Value value{};
  std::vector<Expression> children{};
  std::vector<std::string> names{};  // of kCall, kFilter and kTest: of the arguments by name, which are the last children
};

/// In the place of an argument's name: a mapping, each entry of which is an argument by name.
inline constexpr const char* kUnpackNamed = "**";

/// What `set` and a loop give a value to: names, or a member of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string member;  // of the namespace names[0]; empty: none
};

struct Statement {
  enum class Kind : std::uint8_t {
    kText,
    kOutput,    // expressions[0]
    kLoop,      // over expressions[0], if expressions[1]; bodies: the loop's, and that of else
    kBranch,    // bodies[i] if expressions[i]; a further one for else
    kSet,       // target = expressions[0]
    kSetBlock,  // target = bodies[0], through the filters of expressions[0], whose innermost name is ""
    kMacro,     // text(names), the last expressions are their defaults; bodies[0]
    kScope,     // bodies[0]
    kCall,      // expressions[0], a call of a macro to which bodies[0] is known as caller()
    kFilter,    // bodies[0], through the filters of expressions[0]
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int line = 0;
  std::string text{};
  Target target{};
  std::vector<std::string> names{};
  std::vector<Expression> expressions{};
  std::vector<std::vector<Statement>> bodies{};
};

inline constexpr const char* kCaller = "caller";

using Body = std::vector<Statement>;

}  // namespace llama::jinja
