// Streamed values: none lost, in order for each writer, and writers wait for a reader that is behind.
#include "runtime/records/stream.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <vector>

#include "support/seed.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct Channel {
  std::vector<StreamCell> cells;
  Padded<std::uint64_t> consumed{};
  RunState run{};
  Limit limit;

  explicit Channel(std::uint32_t capacity) : cells(capacity) {}
  Stream<P> stream() { return {cells.data(), &consumed.value, static_cast<std::uint32_t>(cells.size())}; }
};

/// `writers` threads stream {writer, number}; the reader checks the order of each and a plain payload for
/// each value.
void many_writers(std::uint32_t writers, std::uint32_t capacity, std::uint32_t each) {
  Channel channel(capacity);
  std::vector<std::uint32_t> payload(writers * each), next(writers);
  std::uint32_t wrong = 0;
  std::atomic<std::uint32_t> stalled{0};
  const auto write_all = [&](std::uint32_t writer) {
    for (std::uint32_t n = 0; n < each; ++n) {
      payload[writer * each + n] = n + 1;
      const std::uint64_t value = std::uint64_t{writer} << 32 | n;
      if (!channel.stream().write(channel.run, value, channel.limit.wait())) ++stalled;
    }
  };
  const auto read_all = [&] {
    for (std::uint64_t ticket = 0; ticket < std::uint64_t{writers} * each; ++ticket) {
      std::uint64_t value = 0;
      if (!wait_for([&] { return channel.stream().read(ticket, value); })) return void(++wrong);
      const auto writer = static_cast<std::uint32_t>(value >> 32), n = static_cast<std::uint32_t>(value);
      wrong += next[writer]++ != n;
      wrong += payload[writer * each + n] != n + 1;
    }
  };
  run_together(writers + 1, [&](std::uint32_t i) { i < writers ? write_all(i) : read_all(); });
  CHECK(wrong == 0);
  CHECK(stalled == 0);
  CHECK(channel.run.emitted == std::uint64_t{writers} * each);
}
}  // namespace

TEST_CASE("many writers, one reader: nothing lost, each writer in order") {
  many_writers(3, 4, 3000);
  many_writers(2, 1, 1500);
  many_writers(1, 64, 5000);
}

TEST_CASE("a value is not there before it is written, and is read once in order") {
  Channel channel(4);
  std::uint64_t value = 0;
  CHECK_FALSE(channel.stream().read(0, value));
  REQUIRE(channel.stream().write(channel.run, 42, channel.limit.wait()));
  CHECK_FALSE(channel.stream().read(1, value));
  REQUIRE(channel.stream().read(0, value));
  CHECK(value == 42);
  CHECK(channel.consumed.value == 1);
}

TEST_CASE("a full stream holds the writer back until the reader has read") {
  Channel channel(2);
  std::atomic<std::uint32_t> written{0};
  std::jthread writer([&] {
    for (std::uint64_t v = 0; v < 3; ++v) written += channel.stream().write(channel.run, v, channel.limit.wait());
  });
  CHECK(wait_for([&] { return written == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(written == 2);
  std::uint64_t value = 9;
  REQUIRE(channel.stream().read(0, value));
  CHECK(wait_for([&] { return written == 3; }));
  CHECK(value == 0);
}

TEST_CASE("a writer whose reader never comes gives up and aborts nothing else") {
  Channel channel(1);
  channel.limit.budget_ns = 1'000'000;
  CHECK(channel.stream().write(channel.run, 1, channel.limit.wait()));
  CHECK_FALSE(channel.stream().write(channel.run, 2, channel.limit.wait()));
  CHECK_FALSE(channel.limit.gave_up());
  CHECK(channel.limit.report.reason == static_cast<std::uint32_t>(WaitReason::none));
}
