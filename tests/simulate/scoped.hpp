// Atomics with a scope, as AtomicRef has them. The C++ library's have none: the compiler tells the simulator of those.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/order.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

enum class Change { exchange, add, set, mask };

std::uint64_t scoped_load(const void* word, std::size_t bytes, Order order, Scope scope);
void scoped_store(void* word, std::size_t bytes, std::uint64_t value, Order order, Scope scope);
/// What was there before.
std::uint64_t scoped_update(void* word, std::size_t bytes, Change change, std::uint64_t value, Order order, Scope scope);
/// A failure reads relaxed, and tells nothing.
bool scoped_compare_exchange(void* word, std::size_t bytes, std::uint64_t expected, std::uint64_t desired, Order order,
                             Scope scope);
void scoped_fence(Order order, Scope scope);

}  // namespace flywheel::simulate
