// What a random graph and its runs look like, before any library is involved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/records/task.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

inline constexpr std::uint32_t kNever = 0xffffffffu;
inline constexpr std::uint32_t kTreeCode = 1u << 20;  // added to the code of a task whose spawned part fails

struct NodeSpec {
  std::uint32_t first_before = 0;  // in GraphSpec::before
  std::uint32_t before_count = 0;
  std::uint32_t phase = 0;
  Priority priority = Priority::inherit;
  bool returns = false;
  std::uint32_t tree_depth = 0;    // 0: spawns nothing
  std::uint32_t fail_at = kNever;  // pass in which runs with an odd salt fail here
  bool tree_fails = false;         // then not this task fails but some of those it spawned
  std::uint32_t stop_at = kNever;  // pass after which a repeated run ends
  std::uint32_t emits = 0;         // values streamed in each pass
};

struct GraphSpec {
  std::uint64_t seed = 0;
  std::string shape;
  bool phased = false;
  std::vector<NodeSpec> nodes;
  std::vector<std::uint32_t> before;  // predecessors of all nodes, one after the other
  std::vector<std::uint32_t> order;   // order[i]: the node that is added i-th

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes.size()); }
  const std::uint32_t* before_of(const NodeSpec& node) const { return before.data() + node.first_before; }
};

struct RunSpec {
  std::uint64_t salt = 0;
  std::uint32_t bias = 0;
  bool sets_bias = false;
  std::uint32_t repeat = 1;
  Priority priority = Priority::normal;
  bool cancels = false;
  std::uint32_t cancel_after_us = 0;
};

inline constexpr std::uint32_t kDefaultBias = 7;

/// One graph and the runs of it that are in flight together.
struct Case {
  GraphSpec graph;
  std::vector<RunSpec> runs;
  bool two_submitters = false;
};

}  // namespace flywheel::testing
