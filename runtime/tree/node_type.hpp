// What a node of a tree is: a task whose body may spawn more of its kind. All workers work a tree off, see host/api/tree.hpp.
#pragma once

#include <type_traits>

#include "../records/one_thread.hpp"
#include "../records/param.hpp"
#include "../records/task_type.hpp"

namespace flywheel::detail {

/// Stands for the block that a node gets, for checks.
struct AnyTreeBlock : OneThread {
  static constexpr bool kOnGpu = false;
  template <class Node>
  FLYWHEEL_TASK void spawn(const Node&) {}
  template <class Node>
  FLYWHEEL_TASK void spawn_n(const Node&, std::uint32_t) {}
  FLYWHEEL_TASK std::uint32_t index() const { return 0; }
  FLYWHEEL_TASK void fail(std::uint32_t) {}
  FLYWHEEL_TASK std::uint32_t worker() const { return 0; }
  FLYWHEEL_TASK std::uint32_t workers() const { return 1; }
};

/// Whether each thread takes a node of its own.
template <class Node>
constexpr bool is_thread_node() {
  if constexpr (requires { typename Node::Grain; }) return std::is_same_v<typename Node::Grain, Thread>;
  else return false;
}

/// What stands for the sum of nodes that return nothing.
struct NoSum {};

template <class Node>
struct NodeType {
  static_assert(std::is_trivially_copyable_v<Node>, "a node of a tree must be trivially copyable");
  static_assert(sizeof(Node) <= 64 && alignof(Node) <= 8,
                "a node of a tree has at most 64 bytes, aligned to 8: keep larger data in a device buffer and pass a pointer");
  static_assert(is_thread_node<Node>() || is_warp_task<Node>(),
                "a node of a tree says who runs it: `using Grain = flywheel::Thread;` or `using Grain = flywheel::Warp;`");
  static_assert(std::is_invocable_v<const Node&, AnyTreeBlock&>,
                "a node of a tree needs `template <class Block> FLYWHEEL_TASK auto operator()(Block& block) const`");

  using Returned = std::invoke_result_t<const Node&, AnyTreeBlock&>;
  static constexpr bool kReturns = !std::is_void_v<Returned>;
  using Sum = std::conditional_t<kReturns, Returned, NoSum>;
  static_assert(std::is_trivially_copyable_v<Sum> && sizeof(Sum) <= 16,
                "a node of a tree returns nothing, or a plain value of at most 16 bytes");

  /// Calls of spawn() and spawn_n() in one body: `static constexpr std::uint32_t kMostSpawns`, or 2.
  static constexpr std::uint32_t kMostSpawns = [] {
    if constexpr (requires { Node::kMostSpawns; }) return Node::kMostSpawns;
    else return 2;
  }();

  /// Two sums as one: `static Sum combine(Sum, Sum)`, or a + b. It is associative and commutative, and Sum{} is its identity.
  FLYWHEEL_TASK static Sum combine(const Sum& a, const Sum& b) {
    if constexpr (requires { Node::combine(a, b); }) return Node::combine(a, b);
    else if constexpr (kReturns) return static_cast<Sum>(a + b);
    else return a;
  }
};

}  // namespace flywheel::detail
