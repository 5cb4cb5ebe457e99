// What travels through queues and mailboxes: 48 bits that never look like an empty slot.
#include "runtime/records/task.hpp"

#include <rapidcheck.h>

#include "catch.hpp"
#include "runtime/base/queue.hpp"
#include "runtime/records/idle.hpp"
#include "support/internals.hpp"

using namespace flywheel;

TEST_CASE("an item survives packing and never looks like an empty place") {
  CHECK(rc::check([] {
    const Item item{*rc::gen::inRange(0u, 1u << 31), *rc::gen::inRange<std::uint16_t>(0, 1u << 15),
                    *rc::gen::arbitrary<bool>()};
    const std::uint64_t packed = item.pack();
    const Item back = Item::unpack(packed);
    RC_ASSERT(back.record == item.record);
    RC_ASSERT(back.run == item.run);
    RC_ASSERT(back.skip == item.skip);
    RC_ASSERT(packed < (std::uint64_t{1} << 48));
    RC_ASSERT(packed != kNoItem);
    RC_ASSERT(packed != kEmptyMailbox);
  }));
}

TEST_CASE("the largest item of the largest run slot is no empty place") {
  CHECK(Item{0x7fffffffu, 0x7fff, true}.pack() != kNoItem);
  CHECK(Item{0, 0, false}.pack() == 0);
}

TEST_CASE("a task record is one cache line and its arguments keep 16-byte alignment") {
  CHECK(sizeof(TaskRecord) == 128);
  CHECK(alignof(TaskRecord) == 128);
  CHECK(offsetof(TaskRecord, args) % 16 == 0);
  CHECK(sizeof(TaskRecord::args) == kTaskArgBytes);
}
