// The tokens of a template, with Hugging Face's settings of Jinja: trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llama::jinja {

struct Token {
  enum class Kind : unsigned char {
    kData,         // text outside all tags
    kOutputBegin,  // {{
    kOutputEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,  // without quotes and escapes
    kInteger,
    kFloat,
    kOperator,  // also brackets and punctuation
    kEnd,       // of the template
  };
  Kind kind;
  std::string text;
  int line;
};

/// The last token is kEnd. Throws TemplateError for what is no token, and for a template of more than 256 KiB.
std::vector<Token> tokens_of(std::string_view source);

/// A string literal without its quotes, as Python reads its escapes.
std::string without_escapes(std::string_view literal);

}  // namespace llama::jinja
