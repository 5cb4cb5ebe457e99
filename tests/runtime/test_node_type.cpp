// What a type must have to be a node of a tree, and what follows from it.
#include "runtime/tree/node_type.hpp"
#include "support/internals.hpp"

#include <algorithm>

#include "catch.hpp"

using namespace flywheel;

namespace {

struct Plain {
  using Grain = Thread;
  template <class Block>
  std::uint64_t operator()(Block& block) const {
    block.spawn(*this);
    return block.index();
  }
};

struct Silent {
  using Grain = Warp;
  static constexpr std::uint32_t kMostSpawns = 5;
  template <class Block>
  void operator()(Block& block) const {
    block.spawn_n(*this, 2);
  }
};

struct Greatest {
  using Grain = Thread;
  template <class Block>
  int operator()(Block&) const {
    return 1;
  }
  static int combine(int a, int b) { return std::max(a, b); }
};

}  // namespace

TEST_CASE("a node says who runs it, what it returns, and how often it spawns") {
  STATIC_REQUIRE(is_thread_node<Plain>());
  STATIC_REQUIRE_FALSE(is_thread_node<Silent>());
  STATIC_REQUIRE(NodeType<Plain>::kReturns);
  STATIC_REQUIRE_FALSE(NodeType<Silent>::kReturns);
  STATIC_REQUIRE(std::is_same_v<NodeType<Plain>::Sum, std::uint64_t>);
  STATIC_REQUIRE(NodeType<Plain>::kMostSpawns == 2);
  STATIC_REQUIRE(NodeType<Silent>::kMostSpawns == 5);
}

TEST_CASE("sums are added up, or combined as the node says") {
  CHECK(NodeType<Plain>::combine(3, 4) == 7);
  CHECK(NodeType<Greatest>::combine(3, 4) == 4);
}
