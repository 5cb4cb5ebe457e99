// What a task type may have. What it may not have is in tests/compile_fail.
#include "runtime/records/task_type.hpp"
#include "support/compiled_tasks.hpp"
#include "support/dependent_tasks.hpp"
#include "support/early_tasks.hpp"
#include "support/internals.hpp"
#include "support/operand_mistakes.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Bare {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

/// Members of a portable task that are called like parts, and are its own.
struct Helpers : Bare {
  std::uint32_t* store;
  std::uint32_t dependents;
  template <class Value>
  FLYWHEEL_TASK Value compute(Value x) const {
    return x;
  }
  FLYWHEEL_TASK static constexpr std::uint64_t pack(std::uint32_t low, std::uint32_t high) {
    return std::uint64_t{high} << 32 | low;
  }
};
struct BlockHelper : Bare {
  template <class Block>
  FLYWHEEL_TASK void compute(Block&) const {}  // operator() may share its work out
};
struct HiddenHelper : Bare {
 private:
  template <class Block>
  FLYWHEEL_TASK void store(Block&) const {}
};
/// Waits by itself in its body.
struct EarlyBody : Bare {
  static constexpr bool kEarly = true;
};
/// For the tensor cores of some GPU: no block that this header knows.
struct Demanding : Bare {
  template <class Block, class Operands>
  requires requires(Block& block) { block.multiply(); }
  FLYWHEEL_TASK void compute(Block&, Operands&) const {}
  template <class Block>
  FLYWHEEL_TASK void store(Block&) const {}
};
struct Final final : Bare {
  template <class Block>
  FLYWHEEL_TASK void store(Block&) const {}
};
struct ForGpus final : Bare {
  static constexpr bool kEarly = true;
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const { block.producer_commit(); }
};

}  // namespace

TEST_CASE("task types with parts and without are accepted") {
  STATIC_REQUIRE(check_task_type<Bare>());
  STATIC_REQUIRE(check_task_type<EarlyBody>());
  STATIC_REQUIRE(check_task_type<Packed>());
  STATIC_REQUIRE(check_task_type<Stored>());
  STATIC_REQUIRE(check_task_type<Mistaken>());
}

TEST_CASE("members that are called like parts may be something else") {
  STATIC_REQUIRE(check_task_type<Helpers>());
  STATIC_REQUIRE(check_task_type<BlockHelper>());
  STATIC_REQUIRE(check_task_type<HiddenHelper>());
}

TEST_CASE("parts that are not for every block are seen where that can be told, and refused nowhere") {
  using detail::Asks;
  STATIC_REQUIRE(Asks<const ForGpus>::compute);
  STATIC_REQUIRE_FALSE(Asks<const ForGpus>::computes_on<Asks<const ForGpus>::Cpu>);
  STATIC_REQUIRE(check_task_type<ForGpus>());
  STATIC_REQUIRE_FALSE(Asks<const Demanding>::compute);
  STATIC_REQUIRE(detail::names_compute<Demanding>());
  STATIC_REQUIRE(check_task_type<Demanding>());
  STATIC_REQUIRE(check_task_type<Final>());
  STATIC_REQUIRE_FALSE(detail::names_compute<Bare>());
  STATIC_REQUIRE(detail::names_compute<BlockHelper>());
}
