#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace llama {

// The regular expressions that models cut text with before byte-pair encoding. Each has a matcher written by
// hand: no general engine is needed, and no model in this family uses another.
enum class SplitRule : std::uint8_t { kGpt2, kLlama3, kQwen2 };

// The rule whose pattern this is, character for character, as it stands in a tokenizer.json.
std::optional<SplitRule> split_rule_of(std::string_view pattern);

// Cuts `text` (UTF-8) by the rule and visits the pieces in order; together they are the text. Bytes that are
// no UTF-8 count as characters of no class, one a maximal subpart.
void split(SplitRule rule, std::string_view text, const std::function<void(std::string_view)>& visit);

}  // namespace llama
