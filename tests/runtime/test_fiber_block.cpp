// The emulated GPU block: what its threads do together is what a GPU does, and what would hang there has a name here.
#include "support/fiber_block.hpp"

#include <cmath>
#include <set>

#include "support/collective_tasks.hpp"
#include "support/compiled_tasks.hpp"
#include "support/device_state_fixture.hpp"
#include "support/fiber_tasks.hpp"
#include "support/lane_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

float random_bf16(Random& random) {
  const std::uint32_t bits = pick(random, 0, 1) << 31 | pick(random, 120, 130) << 23 | pick(random, 0, 127) << 16;
  return std::bit_cast<float>(bits);
}
std::uint32_t pair(float low, float high) {
  return std::bit_cast<std::uint32_t>(low) >> 16 | (std::bit_cast<std::uint32_t>(high) & 0xffff0000u);
}

/// Random matrices, and each lane's part of them, element by element as the PTX ISA counts them.
struct Matrices {
  float a[16][16], b[16][8], c[16][8], got[16][8];

  explicit Matrices(Random& random) {
    for (auto* row : {&a[0][0], &b[0][0], &c[0][0]})
      for (int i = 0; i < (row == &a[0][0] ? 256 : 128); ++i) row[i] = random_bf16(random);
  }
  float a_at(int lane, int i) const { return a[lane / 4 + (i / 2 % 2 ? 8 : 0)][lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)]; }
  float b_at(int lane, int i) const { return b[lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0)][lane / 4]; }

  template <class Block>
  void multiply(Block& block) {
    const int lane = block.lane(), column = lane % 4 * 2;
    std::uint32_t in_a[4], in_b[2];
    for (int r = 0; r < 4; ++r) in_a[r] = pair(a_at(lane, 2 * r), a_at(lane, 2 * r + 1));
    for (int r = 0; r < 2; ++r) in_b[r] = pair(b_at(lane, 2 * r), b_at(lane, 2 * r + 1));
    float sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = c[lane / 4 + i / 2 * 8][column + i % 2];
    block.multiply_add(sums, in_a, in_b);
    for (int i = 0; i < 4; ++i) got[lane / 4 + i / 2 * 8][column + i % 2] = sums[i];
  }
  void check() const {
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n) {
        double want = c[m][n], size = std::abs(c[m][n]);
        for (int k = 0; k < 16; ++k) {
          want += double{a[m][k]} * b[k][n];
          size += std::abs(double{a[m][k]} * b[k][n]);
        }
        REQUIRE(std::abs(got[m][n] - want) <= 1e-7 * size);
      }
  }
};

struct Three {
  std::uint32_t words[3];
};

/// Neither commutative nor associative.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return a * 31 + b; }

std::uint64_t reduce_oracle(const std::vector<std::uint64_t>& values) {
  std::uint64_t total = 0;
  for (std::size_t first = 0; first < values.size(); first += 32) {
    std::vector<std::uint64_t> warp(values.begin() + first, values.begin() + first + 32);
    for (std::size_t width = 16; width; width /= 2)
      for (std::size_t i = 0; i < width; ++i) warp[i] = mixed(warp[i], warp[i + width]);
    total = first ? mixed(total, warp[0]) : warp[0];
  }
  return total;
}

/// Each thread reads what another lane wrote; without the sync, sometimes before that lane has.
std::uint32_t wrong_neighbours(std::uint64_t seed, bool synced) {
  std::uint32_t wrong = 0;
  compute(
      [&](auto& block, auto&) {
        int* cells = block.template scratch<int>(block.size());
        cells[block.rank()] = block.rank();
        if (synced) block.sync_warp();
        wrong += cells[block.rank() ^ 1] != (block.rank() ^ 1);
      },
      seeded(seed));
  return wrong;
}

/// As the above, from the next warp.
std::uint32_t wrong_warps(std::uint64_t seed, bool synced) {
  std::uint32_t wrong = 0;
  compute(
      [&](auto& block, auto&) {
        int* cells = block.template scratch<int>(block.size());
        for (int round = 0; round < 5; ++round) {
          cells[block.rank()] = block.rank() + round;
          if (synced) block.sync();
          else block.sync_warp();
          const int next = (block.rank() + 32) % block.size();
          wrong += cells[next] != next + round;
          if (synced) block.sync();
        }
      },
      seeded(seed));
  return wrong;
}

struct Handed {
  std::uint32_t thread[256];
};

/// A stream of handoffs whose sums are checked, and how far the compute part was ahead.
struct Handoffs {
  std::uint32_t items, taken = 0, passed = 0, wrong = 0;
  std::set<std::uint32_t> ahead = {};

  void run(std::uint64_t seed) {
    const auto hand_over = [this](auto& block, auto&) {
      for (std::uint32_t item = 0; item < items; ++item) {
        auto* to = block.template producer_acquire<Handed>();
        wrong += to->thread[block.rank()] != 0xffffffffu;
        to->thread[block.rank()] = item * 1000 + static_cast<std::uint32_t>(block.rank());
        block.producer_commit();
        if (block.leader()) ahead.insert(++passed - taken);
      }
    };
    const auto take = [this](auto& block) {
      while (const auto* from = block.template consumer_wait<Handed>()) {
        block.for_each(256, [&](int i) { wrong += from->thread[i] != taken * 1000 + static_cast<std::uint32_t>(i); });
        block.consumer_release();
        if (block.leader()) ++taken;
        block.sync();
      }
    };
    run_fibers(Both{hand_over, take}, {}, seeded(seed));
  }
};
}  // namespace

TEST_CASE("multiply_add is the matrix product of the warp's fragments") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  std::vector<Matrices> matrices(8, Matrices(random));
  for (Matrices& each : matrices) each = Matrices(random);
  compute([&](auto& block, auto&) { matrices[block.warp()].multiply(block); }, seeded(seed));
  for (const Matrices& each : matrices) each.check();
}

TEST_CASE("lanes exchange values of any size with the lane they name") {
  std::uint32_t wrong = 0;
  const auto body = [&](auto& block, auto&) {
    const auto rank = static_cast<std::uint32_t>(block.rank()), lane = rank % 32;
    for (std::uint32_t mask = 0; mask < 32; ++mask)
      wrong += block.shuffle_xor(Three{{rank, mask, ~rank}}, static_cast<int>(mask)).words[2] != ~(rank ^ mask);
    wrong += block.shuffle(static_cast<unsigned char>(lane), 7) != 7;
    wrong += block.shuffle(double(rank), static_cast<int>(lane * 5 % 32)) != double(rank / 32 * 32 + lane * 5 % 32);
  };
  compute(body);
  CHECK(wrong == 0);
}

TEST_CASE("lanes and warps are what both blocks say they are, and exchange values") {
  std::uint32_t words[256], wrong = 0, threads = 0;
  const auto ask = [&](auto& block, auto&&...) {
    wrong += wrong_of_lane(block, words);
    ++threads;
  };
  compute(ask);
  CHECK(threads == 256);
  run_fibers(Both{[](auto&, auto&) {}, ask}, {});
  CHECK(threads == 256 + 32);
  CHECK(wrong == 0);
}

TEST_CASE("reduce combines in the order of the GPU, in both blocks") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  std::vector<std::uint64_t> values(256), want;
  for (std::uint64_t& value : values) value = random();
  for (std::uint64_t i = 0; i < 5; ++i) {
    std::vector<std::uint64_t> moved = values;
    for (std::uint64_t& value : moved) value += i;
    want.push_back(reduce_oracle(moved));
  }
  std::uint64_t wrong = 0, stored = 0;
  const auto all = [&](auto& block, auto&) {
    const auto rank = static_cast<std::size_t>(block.rank());
    for (std::uint64_t i = 0; i < 5; ++i) {
      const std::uint64_t sum = block.reduce(values[rank] + i, mixed);
      wrong += sum != want[i];
    }
  };
  const auto one = [&](auto& block) {
    const auto sum = block.reduce(static_cast<std::uint64_t>(block.lane()), [](auto a, auto b) { return a + b; });
    if (block.leader()) stored = sum;
  };
  for (std::uint64_t i = 0; i < 20; ++i) run_fibers(Both{all, one}, {}, seeded(seed + i));
  CHECK(wrong == 0);
  CHECK(stored == 496);
}

TEST_CASE("collective calls in a random order tell all threads what plain loops say, in both blocks") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr int kCalls = 60;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t of_all = mix(seed, 2 * i), of_one = mix(seed, 2 * i + 1);
    std::vector<std::uint64_t> all(256), one(32);
    run_fibers(
        Both{[&](auto& block, auto&) { all[static_cast<std::size_t>(block.rank())] = make_calls(block, of_all, kCalls); },
             [&](auto& block) { one[static_cast<std::size_t>(block.rank())] = make_calls(block, of_one, kCalls); }},
        {}, seeded(seed + i));
    REQUIRE(all == CollectiveOracle(256, 32).calls(of_all, kCalls));
    REQUIRE(one == CollectiveOracle(32, 32).calls(of_one, kCalls));
  }
}

TEST_CASE("a missing sync shows under some seeds, and none is missed where there is one") {
  std::uint32_t lanes = 0, warps = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CHECK(wrong_neighbours(seed, true) + wrong_warps(seed, true) == 0);
    lanes += wrong_neighbours(seed, false) != 0;
    warps += wrong_warps(seed, false) != 0;
  }
  CHECK(lanes > 10);
  CHECK(warps > 10);
}

TEST_CASE("threads run in an order that the seed decides") {
  const auto order = [](std::uint64_t seed) {
    std::vector<int> ranks;
    compute([&](auto& block, auto&) { ranks.push_back(block.rank()); }, seeded(seed));
    return ranks;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("scratch memory is garbage at first, aligned, shared, and runs out as on the GPU") {
  std::uint32_t wrong = 0;
  CHECK(compute([&](auto& block, auto&) {
          const auto* one = block.template scratch<unsigned char>(1);
          const auto* floats = block.template scratch<float>(1000);
          wrong += *one != kGarbage || reinterpret_cast<const unsigned char*>(floats) != one + 16;
          block.for_each(1000, [&](int i) { wrong += !std::isnan(floats[i]); });
        }).code == 0);
  CHECK(wrong == 0);
  CHECK(compute([](auto& block, auto&) {
          if (block.template scratch<char>(33 << 10)) block.fail(1);
        }).code == static_cast<std::uint32_t>(Status::scratch_exhausted));
}

TEST_CASE("who hands nothing over has the places of handoffs for scratch") {
  constexpr int kAll = (32 << 10) + kHandoffs * kHandoffBytes;
  for (const int more : {0, 16}) {
    const Outcome outcome = compute([&](auto& block, auto&) {
      block.borrow_handoffs();
      if (char* bytes = block.template scratch<char>(kAll + more)) block.for_each(kAll, [&](int i) { bytes[i] = 1; });
    });
    CHECK(outcome.code == (more ? static_cast<std::uint32_t>(Status::scratch_exhausted) : 0));
  }
}

TEST_CASE("handoffs come in order, whichever side is slow") {
  std::set<std::uint32_t> ahead;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Handoffs handoffs{20};
    handoffs.run(seed);
    CHECK(handoffs.wrong == 0);
    CHECK(handoffs.taken == 20);
    ahead.insert(handoffs.ahead.begin(), handoffs.ahead.end());
  }
  CHECK(ahead.count(1));
  CHECK(ahead.count(kHandoffs));
}

TEST_CASE("operands of every size come in full, whatever the body leaves of them") {
  for (const std::uint32_t bytes : {1u, kPageBytes, kPageBytes + 1, 200000u})
    for (const Walk walk : {Walk::all, Walk::late, Walk::none, Walk::half, Walk::hoards}) {
      if (walk == Walk::hoards && pages_of(bytes) > 3) continue;
      OperandNotes notes{};
      const Packed task{&notes, bytes + 1, bytes, walk};
      const std::vector<unsigned char> operands = pack_fibers(task);
      REQUIRE(operands.size() == bytes);
      run_fibers(task, operands);
      CHECK(notes.wrong == 0);
      CHECK(notes.computes == 1);
      CHECK(notes.stores == 1);
      if (walk != Walk::none && walk != Walk::half) CHECK(notes.sum == 8 * operand_sum(bytes + 1, bytes));
    }
}

TEST_CASE("a page that was given back is garbage") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::uint32_t late = 0;
    compute(
        [&](auto& block, auto& operands) {
          const unsigned char* page = operands.consumer_wait();
          if (page[block.lane()] != 1) block.fail(1);
          operands.consumer_release();
          late += page[block.lane()] == kGarbage;
        },
        seeded(seed), 100);
    CHECK(late >= 32);  // at least the last warp sees it
  }
}

TEST_CASE("a body knows its parameters and its pass, and can fail") {
  FiberOptions options;
  options.params = {1, 2, 3, 4};
  options.iteration = 9;
  const Outcome outcome = compute(
      [](auto& block, auto&) {
        if (block.param(Param<unsigned char>{2, 0}) == 3 && block.iteration() == 9 && !block.cancelled()) block.fail(5);
      },
      options);
  CHECK(outcome.code == kUserStatus + 5);
}

TEST_CASE("a body streams values and stops its run when it is given a device state") {
  TestDeviceState device;
  FiberOptions options;
  options.dev = &device.dev;
  const Outcome outcome = compute(
      [](auto& block, auto&) {
        if (block.leader() && block.emit(2.5f)) block.stop();
      },
      options);
  std::uint64_t bits = 0;
  REQUIRE(Views<CpuPlatform>{device.dev}.stream(0).read(0, bits));
  CHECK(std::bit_cast<float>(static_cast<std::uint32_t>(bits)) == 2.5f);
  CHECK(outcome.stop == 1);
  CHECK(outcome.code == 0);
}
