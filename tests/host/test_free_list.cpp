#include "host/base/free_list.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <map>

#include "catch.hpp"

using flywheel::FreeList;

namespace {

/// The taken ranges, position -> size: what a list of `kSize` units must never contradict.
using Model = std::map<std::uint64_t, std::uint64_t>;
constexpr std::uint64_t kSize = 64;

std::uint64_t used(const Model& model) {
  std::uint64_t sum = 0;
  for (const auto& [at, size] : model) sum += size;
  return sum;
}

/// The longest gap between taken ranges.
std::uint64_t longest_gap(const Model& model) {
  std::uint64_t end = 0, longest = 0;
  for (const auto& [at, size] : model) {
    longest = std::max(longest, at - end);
    end = at + size;
  }
  return std::max(longest, kSize - end);
}

bool overlaps(const Model& model, std::uint64_t at, std::uint64_t size) {
  for (const auto& [other, other_size] : model)
    if (at < other + other_size && other < at + size) return true;
  return false;
}

void take(FreeList& list, Model& model, std::uint64_t size) {
  const auto at = list.allocate(size);
  const std::uint64_t units = std::max<std::uint64_t>(size, 1);
  RC_ASSERT(at.has_value() == (longest_gap(model) >= units));
  if (!at) return;
  RC_ASSERT(*at + units <= kSize);
  RC_ASSERT(!overlaps(model, *at, units));
  model[*at] = units;
}

}  // namespace

TEST_CASE("a free list hands out disjoint ranges and joins what comes back") {
  const bool holds = rc::check("model of a free list", [] {
    FreeList list(kSize);
    Model model;
    const auto steps = *rc::gen::container<std::vector<std::pair<bool, unsigned>>>(
        rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange(0u, 20u)));
    for (const auto& [takes, number] : steps) {
      if (takes || model.empty()) {
        take(list, model, number);
      } else {
        const auto chosen = std::next(model.begin(), number % model.size());
        list.release(chosen->first);
        model.erase(chosen);
      }
      RC_ASSERT(list.used() == used(model));
    }
  });
  CHECK(holds);
}

TEST_CASE("a range that was never taken cannot be given back") {
  FreeList list(10);
  const auto at = list.allocate(10);
  REQUIRE(at);
  list.release(*at + 1);
  CHECK(list.used() == 10);
  CHECK_FALSE(list.allocate(1));
  list.release(*at);
  list.release(*at);
  CHECK(list.used() == 0);
  CHECK(list.allocate(10) == at);
}

TEST_CASE("an empty list has nothing, and grows by add()") {
  FreeList list;
  CHECK_FALSE(list.allocate(0));
  list.add(100, 2);
  CHECK(list.allocate(0) == 100u);
  CHECK(list.allocate(1) == 101u);
  CHECK_FALSE(list.allocate(1));
}
