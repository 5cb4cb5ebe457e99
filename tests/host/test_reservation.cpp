#include "host/submit/reservation.hpp"
#include "support/internals.hpp"

#include "support/expect.hpp"

using namespace flywheel;

namespace {
constexpr std::uint64_t kRoom = 100;
const Reservation::Clock::time_point kStart{};
}  // namespace

TEST_CASE("no run is held up before a large run asks for room, nor after it has stopped asking") {
  Reservation reservation;
  CHECK(reservation.lets_pass(kRoom));
  const std::uint64_t first = reservation.entered(10);
  reservation.ask(1, 95, kRoom, 10, kStart);
  reservation.left(first, 10);
  reservation.entered(20);
  reservation.ask(1, 95, kRoom, 20, kStart);
  CHECK_FALSE(reservation.lets_pass(10));
  reservation.drop();
  CHECK(reservation.lets_pass(kRoom));
}

TEST_CASE("a large run is passed while what it found in flight leaves it no room, and then only beside it") {
  Reservation reservation;
  const std::uint64_t small = reservation.entered(10), large = reservation.entered(60);
  reservation.ask(1, 50, kRoom, 70, kStart);
  const std::uint64_t passed = reservation.entered(30);
  CHECK(reservation.lets_pass(30));
  reservation.left(large, 60);
  reservation.ask(1, 50, kRoom, 40, kStart);  // 30 have passed; 10 are still there from before
  CHECK_FALSE(reservation.lets_pass(41));
  CHECK(reservation.lets_pass(40));
  const std::uint64_t beside = reservation.entered(25);
  CHECK_FALSE(reservation.lets_pass(16));
  reservation.left(beside, 25);
  CHECK(reservation.lets_pass(40));
  reservation.left(passed, 30);
  CHECK_FALSE(reservation.lets_pass(41));
  reservation.left(small, 10);
  CHECK(reservation.lets_pass(50));
}

TEST_CASE("what has passed a large run and stays is waited for like the rest, later each time") {
  Reservation reservation;
  auto now = kStart;
  std::uint64_t stays = reservation.entered(60);
  reservation.ask(1, 50, kRoom, 60, now);
  for (int factor = 1; factor < 5; factor *= 2) {
    const std::uint64_t next = reservation.entered(60);
    reservation.left(stays, 60);
    stays = next;
    reservation.ask(1, 50, kRoom, 60, now);
    CHECK_FALSE(reservation.lets_pass(60));
    reservation.ask(1, 50, kRoom, 60, now + factor * Reservation::kMostWait);
    CHECK_FALSE(reservation.lets_pass(60));
    now += factor * Reservation::kMostWait + std::chrono::milliseconds(1);
    reservation.ask(1, 50, kRoom, 60, now);
    CHECK(reservation.lets_pass(60));
  }
}

TEST_CASE("another run that asks begins anew") {
  Reservation reservation;
  const std::uint64_t first = reservation.entered(60);
  reservation.ask(1, 50, kRoom, 60, kStart);
  reservation.entered(30);
  reservation.left(first, 60);
  reservation.ask(1, 80, kRoom, 30, kStart);
  CHECK_FALSE(reservation.lets_pass(60));
  reservation.ask(2, 80, kRoom, 30, kStart);
  CHECK(reservation.lets_pass(60));
}
