// What is inside a value: its elements, attributes, items and slices.
#pragma once

#include <string>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

/// What a loop goes over: the elements of a list, the keys of a dictionary, the characters of a string, nothing of an undefined
/// value. Throws Problem for what has no elements.
Values items_of(Budget& budget, const Value& value);
/// len(), of the same.
std::int64_t length_of(const Value& value);

/// `value.name`: a method before a key, as Jinja has it. Undefined where there is neither.
Value attribute_of(Budget& budget, const Value& value, const std::string& name);
/// `value[key]`: a key before a method.
Value item_of(Budget& budget, const Value& value, const Value& key);
/// value[begin:end:step], each of which may be none. Undefined for what is neither list nor string.
Value slice_of(Budget& budget, const Value& value, const Value& begin, const Value& end, const Value& step);

/// "a.b.0" of a filter's attribute=, one after the other.
Value at_path(Budget& budget, const Value& value, const Value& path);

}  // namespace llama::jinja
