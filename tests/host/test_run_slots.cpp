#include "host/submit/run_slots.hpp"
#include "support/internals.hpp"

#include "catch.hpp"

using namespace flywheel;

namespace {
std::shared_ptr<RunRecord> make_run() { return std::make_shared<RunRecord>(std::make_shared<LoadedGraph>(nullptr)); }
}  // namespace

TEST_CASE("a slot's runs have generations of their own, and each begins at the ticket at which the last one ended") {
  RunSlots slots(1);
  for (std::uint32_t generation = 1; generation <= 3; ++generation) {
    const auto run = make_run();
    CHECK(slots.free() == 1);
    slots.take(run);
    CHECK(slots.free() == 0);
    CHECK(slots.live() == 1);
    CHECK(slots.holds(*run));
    CHECK(slots[run->slot] == run);
    CHECK(run->generation == generation);
    CHECK(run->stream_next == 10 * (generation - 1));
    run->stream_next += 10;
    slots.give_back(*run);
    CHECK_FALSE(slots.holds(*run));
  }
}

TEST_CASE("runs in flight have different slots, and a run that was given back is not its slot's next one") {
  RunSlots slots(2);
  const auto one = make_run(), two = make_run(), three = make_run();
  slots.take(one);
  slots.take(two);
  CHECK(one->slot != two->slot);
  slots.give_back(*one);
  slots.take(three);
  CHECK(three->slot == one->slot);
  CHECK_FALSE(slots.holds(*one));
  CHECK(slots.holds(*three));
}

TEST_CASE("slots of abandoned runs are not given out again") {
  RunSlots slots(3);
  const auto one = make_run(), two = make_run();
  slots.take(one);
  slots.take(two);
  const auto all = slots.abandon();
  CHECK(all.size() == 2);
  CHECK(slots.live() == 0);
  CHECK(slots.free() == 1);
  CHECK_FALSE(slots.holds(*one));
  CHECK(slots.abandon().empty());
}
