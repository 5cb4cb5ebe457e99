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

/// In as many trips as it has lengths of words, or in one fewer. `size`: of the packed message.
bool read(const Inbox<P>& inbox, std::uint64_t number, Message& message, std::uint32_t* size = nullptr) {
  std::uint32_t words[kMessageWords], packed = 0;
  const std::uint32_t loaded = number % 2 ? kFirstWords : 16;
  Polled<P, kFirstWords> polled;
  inbox.load(number, polled, 0, loaded);
  if (!inbox.take(number, polled, loaded, words, packed)) return false;
  std::memcpy(&message, words, sizeof(message));
  if (size) *size = packed;
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
    for (std::uint32_t missing = 0; missing < kMostPacked; ++missing) {
      Ring ring(2, number);
      InboxEntry& entry = ring.entries[number % 2];
      const std::uint64_t old = entry.words[missing];
      ring.inbox().write(number, message_of(8));
      const std::uint64_t fresh = entry.words[missing];
      Message got{};
      std::uint32_t size = 0;
      CHECK(read(ring.inbox(), number, got, &size));
      entry.words[missing] = old;
      CHECK(read(ring.inbox(), number, got) == (missing >= size));
      entry.words[missing] = fresh;
      CHECK(read(ring.inbox(), number, got));
    }
}

TEST_CASE("words that are as usual are not written, whatever the others are") {
  CHECK(rc::check([](std::vector<bool> unusual, std::vector<std::uint32_t> values) {
    unusual.resize(kMessageWords);
    values.resize(kMessageWords);
    std::uint32_t words[kMessageWords];
    for (std::uint32_t i = 0; i < kMessageWords; ++i) words[i] = unusual[i] ? values[i] : usual_word(i);
    Ring ring(2, 2);
    const InboxEntry before = ring.entries[0];
    const Message sent = full_message(words);
    std::memcpy(words, &sent, sizeof words);
    std::uint32_t size = kMaskWords, read_size = 0;
    for (std::uint32_t i = 0; i < kMessageWords; ++i) size += words[i] != usual_word(i);
    ring.inbox().write(2, sent);
    RC_ASSERT(std::memcmp(before.words + size, ring.entries[0].words + size, 8 * (kMostPacked - size)) == 0);
    Message got{};
    RC_ASSERT(read(ring.inbox(), 2, got, &read_size));
    RC_ASSERT(same(sent, got));
    RC_ASSERT(read_size == size);
  }));
}

TEST_CASE("a task of a few bytes that belongs to no graph is a short message") {
  Message sent{};
  sent.run.op = static_cast<std::uint32_t>(InboxOp::submit);
  sent.run.repeat = sent.run.sinks = sent.run.root_count = 1;
  sent.run.priority = static_cast<std::uint32_t>(Priority::normal);
  sent.run.flags = kRootsUniform | kRootsDense | kInlineRoot;
  sent.run.slot = 700, sent.run.generation = 123456789;
  TaskRecord record{};
  record.header.type = 3;
  record.header.result_offset = kResultInCompletion;
  std::memset(record.args, 0xab, 12);
  std::memcpy(sent.carried, &record, sizeof record);
  Ring ring(2, 2);
  ring.inbox().write(2, sent);
  Message got{};
  std::uint32_t size = 0;
  REQUIRE(read(ring.inbox(), 2, got, &size));
  CHECK(size == kMaskWords + 3 + 3);  // the slot, the generation, the type; the arguments
}

TEST_CASE("a message that carries nothing is there with the words of its run, and no others are written") {
  Message empty = message_of(8), got{};
  for (const std::uint32_t flags : {kCompiled | 0u, kRootsDense | 0u}) {
    Ring ring(2, 2);
    empty.run.flags = flags;
    empty.run.param_bytes = kInlineBytes + 1;  // too many to be carried
    ring.inbox().write(2, empty);
    std::uint32_t size = 0;
    REQUIRE(read(ring.inbox(), 2, got, &size));
    CHECK(size <= kMaskWords + kRunWords);
    CHECK(std::memcmp(&got, &empty.run, sizeof empty.run) == 0);
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

TEST_CASE("several entries are read at once, up to the first that is missing or too long") {
  Message small{};
  small.run.op = static_cast<std::uint32_t>(InboxOp::cancel);
  const auto count = [](Inbox<P> inbox, std::uint64_t number, PollShape shape = {4, 5}) {
    PolledSeveral<P> polled;
    std::uint32_t packed[kSeveralWords + 1];
    inbox.load_several(number, polled, shape);
    return inbox.look(number, polled, shape, packed).complete;
  };
  Ring ring(8, 5);
  for (std::uint32_t n = 5; n < 8; ++n) ring.inbox().write(n, small);
  ring.inbox().write(9, small);
  CHECK(count(ring.inbox(), 5) == 3);
  CHECK(count(ring.inbox(), 8) == 0);
  ring.inbox().write(8, small);
  CHECK(count(ring.inbox(), 6) == 4);
  CHECK(count(ring.inbox(), 6, {2, 5}) == 2);
  ring.inbox().write(10, message_of(3));  // longer than what a poll loads
  CHECK(count(ring.inbox(), 8) == 2);
  CHECK(count(ring.inbox(), 8, {32, 3}) == 2);
  small.run.slot = small.run.generation = 1;
  ring.inbox().write(9, small);  // longer than a short one
  CHECK(count(ring.inbox(), 8, {32, 3}) == 1);
  CHECK(count(ring.inbox(), 8, {16, 4}) == 2);
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
