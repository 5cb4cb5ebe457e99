// The inbox: an entry is there as a whole or not at all, in order, also where its 32-bit tag wraps.
#include "runtime/inbox.hpp"

#include <rapidcheck.h>

#include <atomic>
#include <vector>

#include "support/threads.hpp"

#include "catch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

InboxMessage message_of(std::uint32_t seed) {
  return {InboxOp::submit, seed, seed * 3, seed ^ 0xffff, seed + 9, seed / 2, ~seed, seed % 3};
}

bool same(const InboxMessage& a, const InboxMessage& b) {
  for (std::uint32_t i = 0; i < kInboxWords; ++i)
    if (a.word(i) != b.word(i)) return false;
  return true;
}

/// A ring whose entries look as if `first` messages had gone through it already.
struct Ring {
  std::vector<InboxEntry> entries;
  std::uint64_t consumed;

  Ring(std::uint32_t capacity, std::uint64_t first) : entries(capacity), consumed(first) {
    for (std::uint64_t n = first < capacity ? first : first - capacity; n < first; ++n) inbox().write(n, message_of(0));
  }
  Inbox<P> inbox() { return {entries.data(), static_cast<std::uint32_t>(entries.size()), &consumed}; }
};

/// One thread writes, one reads; each message comes with a plain payload in a cell that is reused after release().
void pass_messages(std::uint32_t capacity, std::uint64_t first, std::uint32_t count) {
  Ring ring(capacity, first);
  std::vector<std::uint32_t> payload(capacity);
  std::uint32_t wrong = 0;
  std::atomic<bool> hung{false};
  const auto write_all = [&] {
    for (std::uint64_t n = first; n < first + count && !hung; ++n) {
      const auto room = [&] { return n - P::system(ring.consumed).load(Order::acquire) < capacity; };
      if (!wait_for(room)) return void(hung = true);
      payload[n % capacity] = static_cast<std::uint32_t>(n * 5);
      ring.inbox().write(n, message_of(static_cast<std::uint32_t>(n)));
    }
  };
  const auto read_all = [&] {
    for (std::uint64_t n = first; n < first + count && !hung; ++n) {
      InboxMessage message{};
      if (!wait_for([&] { return ring.inbox().read(n, message); })) return void(hung = true);
      wrong += !same(message, message_of(static_cast<std::uint32_t>(n)));
      wrong += payload[n % capacity] != static_cast<std::uint32_t>(n * 5);
      ring.inbox().release(n + 1);
    }
  };
  run_together(2, [&](std::uint32_t i) { i ? write_all() : read_all(); });
  CHECK_FALSE(hung);
  CHECK(wrong == 0);
}
}  // namespace

TEST_CASE("a message survives the inbox word for word") {
  CHECK(rc::check([](std::vector<std::uint32_t> values) {
    values.resize(7);
    Ring ring(4, 0);
    const InboxMessage sent{InboxOp::cancel, values[0], values[1], values[2], values[3], values[4], values[5], values[6]};
    ring.inbox().write(0, sent);
    InboxMessage got{};
    RC_ASSERT(ring.inbox().read(0, got));
    RC_ASSERT(same(sent, got));
    RC_ASSERT(!ring.inbox().read(1, got));
    RC_ASSERT(!ring.inbox().read(4, got));  // the same place, a lap later
  }));
}

TEST_CASE("an entry is not there until all its words are") {
  for (std::uint32_t missing = 0; missing < kInboxWords; ++missing) {
    Ring ring(2, 2);
    const std::uint64_t old = ring.entries[0].words[missing];
    ring.inbox().write(2, message_of(8));
    const std::uint64_t fresh = ring.entries[0].words[missing];
    ring.entries[0].words[missing] = old;
    InboxMessage got{};
    CHECK_FALSE(ring.inbox().read(2, got));
    ring.entries[0].words[missing] = fresh;
    CHECK(ring.inbox().read(2, got));
  }
}

TEST_CASE("a writer and a reader thread never tear a message") {
  pass_messages(1, 0, 3000);
  pass_messages(8, 0, 20000);
}

TEST_CASE("the tag wraps at 2^32") {
  pass_messages(4, (std::uint64_t{1} << 32) - 1000, 2000);
  Ring ring(2, 0xffffffffull);
  ring.inbox().write(0xffffffffull, message_of(5));
  InboxMessage got{};
  CHECK(Inbox<P>::tag(0xffffffffull) == 0);
  CHECK(ring.inbox().read(0xffffffffull, got));
  CHECK_FALSE(ring.inbox().read(0x100000001ull, got));
}
