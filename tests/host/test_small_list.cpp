#include "host/tasks/small_list.hpp"
#include "support/internals.hpp"

#include <vector>

#include "catch.hpp"

namespace {
using SmallInts = flywheel::SmallList<int, 3>;

std::vector<int> values(const SmallInts& list) { return {list.begin(), list.end()}; }

SmallInts list_of(int count) {
  SmallInts list;
  for (int i = 0; i < count; ++i) list.push_back(i);
  return list;
}
}  // namespace

TEST_CASE("a small list keeps its values, however many, in copies and moves too") {
  for (int count = 0; count < 20; ++count) {
    std::vector<int> wanted;
    for (int i = 0; i < count; ++i) wanted.push_back(i);
    SmallInts list = list_of(count), other = list_of(7);
    CHECK(values(list) == wanted);
    CHECK(list.size() == wanted.size());
    CHECK(list.empty() == wanted.empty());
    const SmallInts copy = list;
    other = copy;
    CHECK(values(other) == wanted);
    SmallInts moved = std::move(list);
    CHECK(values(moved) == wanted);
    CHECK(list.empty());
    list.push_back(5);
    CHECK(values(list) == std::vector{5});
    moved.push_back(count);
    other = std::move(moved);
    wanted.push_back(count);
    CHECK(values(other) == wanted);
    CHECK(values(copy).size() + 1 == wanted.size());
  }
}

TEST_CASE("a value of a small list can be added to it again while it grows") {
  SmallInts list = list_of(3);
  list.push_back(list[2]);
  list.push_back(list[1]);
  CHECK(values(list) == std::vector{0, 1, 2, 2, 1});
}

TEST_CASE("a small list takes any number of values, in the list itself or behind it") {
  for (int before = 0; before < 8; ++before)
    for (int more = 0; more < 12; ++more) {
      SmallInts list = list_of(before);
      int* to = list.add_together(static_cast<std::size_t>(more));
      for (int i = before; i < before + more; ++i) *to++ = i;
      CHECK(values(list) == values(list_of(before + more)));
      list.push_back(-1);
      CHECK(list[list.size() - 1] == -1);
    }
}
