// The list schedule that uneven tasks are measured against.
#include "apps/bench/list_schedule.hpp"
#include "catch.hpp"

namespace bench {

TEST_CASE("list schedule: each task goes to the worker that is free first") {
  CHECK(list_schedule({}, 3) == 0);
  CHECK(list_schedule({2, 3, 4}, 1) == 9);
  CHECK(list_schedule({2, 3, 4}, 2) == 6);
  CHECK(list_schedule({1, 1, 1, 1, 10}, 2) == 12);
  CHECK(list_schedule({5, 1, 1, 1, 1, 1}, 2) == 5);
  CHECK(list_schedule({7, 1}, 8) == 7);
}

}  // namespace bench
