// Arithmetic and comparison as Python has them.
#pragma once

#include <string_view>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// "+", "-", "*", "/", "//", "%", "**" or "~". Throws Problem for kinds that the operator does not take, a zero to divide by,
/// and integers beyond 64 bits.
Value combined(Budget& budget, std::string_view name, const Value& a, const Value& b);
Value negated(const Value& value);

bool equal(Budget& budget, const Value& a, const Value& b);
/// Below 0, 0 or above 0. Throws Problem for kinds that have no order.
int order_of(Budget& budget, const Value& a, const Value& b);
bool contains(Budget& budget, const Value& whole, const Value& part);
/// "==", "!=", "<", "<=", ">", ">=", "in" or "not in".
bool compared(Budget& budget, std::string_view name, const Value& a, const Value& b);

}  // namespace llama::jinja
