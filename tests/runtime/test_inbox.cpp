// The inbox: an entry is there as a whole or not at all, in order, also where its 32-bit tag wraps.
#include "runtime/records/inbox.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "support/threads.hpp"

#include "catch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// Any words, in a message that carries something, with the flags that Inbox::write() adds.
Message full_message(const std::uint32_t* words) {
  Message message;
  std::memcpy(&message, words, sizeof(message));
  message.run.op = static_cast<std::uint32_t>(InboxOp::submit);
  message.run.flags |= kInlineRoot | kCarries;
  if (is_for_direct_slot(message.run)) message.run.flags |= kForDirectSlot;
  return message;
}
Message message_of(std::uint32_t seed) {
  std::uint32_t words[kMessageWords];
  for (std::uint32_t i = 0; i < kMessageWords; ++i) words[i] = seed * (i + 1) + i;
  return full_message(words);
}

bool same(const Message& a, const Message& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

/// In one trip for the odd numbers, in two for the others.
bool read(const Inbox<P>& inbox, std::uint64_t number, Message& message) {
  std::uint32_t words[1][kMessageWords];
  bool whole = number % 2;
  if (!inbox.read(number, words, whole)) return false;
  std::memcpy(&message, words, sizeof(message));
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

/// One thread writes, one reads; each message comes with a plain payload in a cell that is reused after
/// release().
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
      Message message{};
      if (!wait_for([&] { return read(ring.inbox(), n, message); })) return void(hung = true);
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
    values.resize(kMessageWords);
    Ring ring(4, 0);
    const Message sent = full_message(values.data());
    ring.inbox().write(0, sent);
    Message got{};
    RC_ASSERT(read(ring.inbox(), 0, got));
    RC_ASSERT(same(sent, got));
    RC_ASSERT(!read(ring.inbox(), 1, got));
    RC_ASSERT(!read(ring.inbox(), 4, got));  // the same place, a lap later
  }));
}

TEST_CASE("an entry is not there until all its words are") {
  for (const std::uint64_t number : {2, 3})
    for (std::uint32_t missing = 0; missing < kMessageWords; ++missing) {
      Ring ring(2, number);
      InboxEntry& entry = ring.entries[number % 2];
      const std::uint64_t old = entry.words[missing];
      ring.inbox().write(number, message_of(8));
      const std::uint64_t fresh = entry.words[missing];
      entry.words[missing] = old;
      Message got{};
      CHECK_FALSE(read(ring.inbox(), number, got));
      entry.words[missing] = fresh;
      CHECK(read(ring.inbox(), number, got));
    }
}

TEST_CASE("a message that carries nothing is there with the words of its run, and no others are written") {
  Message empty = message_of(8), got{};
  for (const std::uint32_t flags : {kCompiled | 0u, kRootsDense | 0u}) {
    Ring ring(2, 2);
    const InboxEntry before = ring.entries[0];
    empty.run.flags = flags;
    empty.run.param_bytes = kInlineBytes + 1;  // too many to be carried
    ring.inbox().write(2, empty);
    CHECK(std::memcmp(before.words + kRunWords, ring.entries[0].words + kRunWords,
                      sizeof before.words[0] * (kMessageWords - kRunWords)) == 0);
    bool whole = false;
    std::uint32_t words[1][kMessageWords];
    REQUIRE(ring.inbox().read(2, words, whole) == 1);
    CHECK_FALSE(whole);
    CHECK(std::memcmp(words, &empty.run, sizeof empty.run) == 0);
    empty.run.param_bytes = kInlineBytes;
    ring.inbox().write(3, empty);
    CHECK(read(ring.inbox(), 3, got));
    empty.run.flags |= kCarries;
    CHECK(same(got, empty));
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
  Message got{};
  CHECK(Inbox<P>::tag(0xffffffffull) == 0);
  CHECK(read(ring.inbox(), 0xffffffffull, got));
  CHECK_FALSE(read(ring.inbox(), 0x100000001ull, got));
}

TEST_CASE("several entries are read at once, up to the first that is missing") {
  Ring ring(8, 5);
  for (std::uint32_t n = 5; n < 8; ++n) ring.inbox().write(n, message_of(n));
  ring.inbox().write(9, message_of(9));
  std::uint32_t words[4][kMessageWords], two[2][kMessageWords];
  bool whole = false;
  CHECK(ring.inbox().read(5, two, whole) == 2);
  CHECK(whole);  // from now on, since these have carried something
  CHECK(ring.inbox().read(5, words, whole) == 3);
  for (std::uint32_t e = 0; e < 3; ++e) {
    const Message sent = message_of(5 + e);
    CHECK(std::memcmp(words[e], &sent, sizeof(sent)) == 0);
  }
  CHECK(ring.inbox().read(8, words, whole) == 0);
  ring.inbox().write(8, message_of(8));
  CHECK(ring.inbox().read(6, words, whole) == 4);
}

TEST_CASE("a message that is all the worker at the direct slot needs is marked so, and no other") {
  Ring ring(16, 0);
  std::uint64_t number = 0;
  const auto marked = [&](const auto& change) {
    Message sent{}, got{};
    sent.run.op = static_cast<std::uint32_t>(InboxOp::submit);
    sent.run.root_count = 1;
    change(sent.run);
    ring.inbox().write(number, sent);
    REQUIRE(read(ring.inbox(), number, got));
    ++number;
    return (got.run.flags & kForDirectSlot) != 0;
  };
  CHECK(marked([](RunConstants&) {}));
  CHECK(marked([](RunConstants& run) { run.param_bytes = kInlineBytes; }));
  CHECK(marked([](RunConstants& run) { run.root_count = 0, run.flags = kInlineRoot; }));
  CHECK_FALSE(marked([](RunConstants& run) { run.param_bytes = kInlineBytes + 1; }));
  CHECK_FALSE(marked([](RunConstants& run) { run.root_count = 2; }));
  CHECK_FALSE(marked([](RunConstants& run) { run.flags = kFollows; }));
  CHECK_FALSE(marked([](RunConstants& run) { run.flags = kPhased; }));
  CHECK_FALSE(marked([](RunConstants& run) { run.op = static_cast<std::uint32_t>(InboxOp::cancel); }));
}
