// What an emulated GPU block says when a task would hang on the GPU, or go wrong there without a word.
#include "support/expect.hpp"
#include "support/fiber_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

template <class Compute>
std::string compute_error(Compute&& body, std::size_t bytes = 0) {
  return error_of<std::runtime_error>([&] { compute(body, {}, bytes); });
}
template <class Compute, class Store>
std::string error_of_both(Compute&& on_compute, Store&& on_store) {
  return error_of<std::runtime_error>([&] { run_fibers(Both{on_compute, on_store}, {}); });
}

/// Packs `written` bytes where it said `bytes`.
struct Packs {
  std::uint32_t bytes, written;
  std::uint32_t operand_bytes() const { return bytes; }
  template <class Block>
  void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(written), [&](int i) { to[i] = static_cast<unsigned char>(i); });
  }
  template <class Block>
  void operator()(Block&) const {}
};

}  // namespace

TEST_CASE("lanes of a warp at different collectives are told apart") {
  check_says(
      compute_error([](auto& block, auto&) {
        if (block.warp() == 2 && block.lane() >= 4) block.sync_warp();
        else block.shuffle_xor(1.0, 1);
      }),
      {"lanes of a warp meet at different collectives: compute warp 2", "at sync_warp()", "at shuffle_xor() of 8 bytes"});
  check_says(compute_error([](auto& block, auto&) {
               if (block.lane()) block.shuffle(1.0, 1);
               else block.shuffle(1.0f, 1);
             }),
             {"different collectives", "at shuffle() of 4 bytes", "at shuffle() of 8 bytes", "FiberOptions::seed = "});
  check_says(compute_error([](auto& block, auto&) {
               if (block.lane() == 9) return;
               block.sync_warp();
             }),
             {"different collectives", "lane 9 at the end of its part"});
}

TEST_CASE("for_each() of some lanes of a warp is an error, in both blocks") {
  check_says(compute_error([](auto& block, auto&) {
               if (block.lane()) block.for_each(256, [](int) {});
               else block.sync_warp();
             }),
             {"different collectives", "at for_each()", "at sync_warp()"});
  check_says(error_of_both([](auto&, auto&) {},
                           [](auto& block) {
                             if (block.lane() < 5) block.for_each(32, [](int) {});
                             else block.sync();
                           }),
             {"different collectives", "the store warp", " at for_each()", " at sync() of the store warp"});
}

TEST_CASE("sync() without those who have returned is an error, within a warp and among warps") {
  check_says(
      compute_error([](auto& block, auto&) {
        if (block.rank() != 70) block.sync();
      }),
      {"sync() was reached by some threads while others have returned: compute warp 2", "lane 6 at the end of its part"});
  check_says(compute_error([](auto& block, auto&) {
               if (block.warp() != 3) block.sync();
             }),
             {"sync() was reached by some threads while others have returned", "compute warp 2: lanes 0-31 at sync();",
              "compute warp 3: lanes 0-31 at the end of its part;", "the store warp: lanes 0-31 at consumer_wait()"});
}

TEST_CASE("a vote of some warps while others are at sync() is an error, and so is a scan of some lanes") {
  check_says(compute_error([](auto& block, auto&) {
               if (block.warp() == 3) block.sync();
               else block.any(true);
             }),
             {"at sync()", "at count()"});
  check_says(
      compute_error([](auto& block, auto&) {
        const auto add = [](int a, int b) { return a + b; };
        if (block.lane() < 16) block.inclusive_scan(1, add);
        else block.exclusive_scan(1, add, 0);
      }),
      {"lanes of a warp meet at different collectives", "at inclusive_scan() of 4 bytes", "at exclusive_scan() of 4 bytes"});
}

TEST_CASE("a deadlock says who waits for what") {
  const auto hoard = [](auto&, auto& operands) {
    while (operands.consumer_wait()) {}
  };
  CHECK(compute_error(hoard, 3 * kPageBytes).empty());
  check_says(compute_error(hoard, 3 * kPageBytes + 1),
             {"deadlock, no thread can go on", "compute warp 7: lanes 0-31 at consumer_wait()", "pages: 3 of 4 came",
              "given back by warps 0 0 0 0 0 0 0 0", "call consumer_release() or raise FiberOptions::pages"});
  check_says(compute_error(
                 [](auto& block, auto& operands) {
                   while (operands.consumer_wait())
                     if (block.warp() != 5) operands.consumer_release();
                 },
                 5 * kPageBytes),
             {"deadlock", "given back by warps 3 3 3 3 3 0 3 3"});
  check_says(compute_error([](auto& block, auto&) {
               for (int i = 0; i < 3 && block.warp() != 1; ++i) {
                 block.template producer_acquire<float>();
                 block.producer_commit();
               }
               if (block.warp() == 1) block.sync();
             }),
             {"deadlock", "compute warp 0: lanes 0-31 at producer_acquire()", "passed on by warps 2 0 2 2 2 2 2 2"});
}

TEST_CASE("pages are given back once, after they were taken") {
  check_says(compute_error([](auto&, auto& operands) { operands.consumer_release(); }, 1),
             {"holds none", "call consumer_wait() first"});
  check_says(compute_error(
                 [](auto&, auto& operands) {
                   for (int i = 0; i < 3; ++i) operands.consumer_wait();
                   for (int i = 0; i < 3; ++i) operands.consumer_release();
                 },
                 2 * kPageBytes),
             {"gives a page back and holds none"});
  FiberOptions options;
  options.pages = 1;
  check_says(error_of<std::runtime_error>([&] { compute([](auto&, auto&) {}, options); }), {"raise FiberOptions::pages"});
}

TEST_CASE("handoffs that do not fit together are errors on both sides") {
  const auto nothing = [](auto&) {};
  const auto send = [](auto& block, auto&) {
    block.template producer_acquire<float>();
    block.producer_commit();
  };
  check_says(error_of_both([](auto& block, auto&) { block.producer_commit(); }, nothing), {"call producer_acquire() first"});
  check_says(error_of_both(
                 [](auto& block, auto&) {
                   if (block.warp() != 4) return;
                   block.template producer_acquire<float>();
                   block.producer_commit();
                 },
                 nothing),
             {"equally often", "0 0 0 0 1 0 0 0"});
  check_says(error_of_both(
                 [](auto& block, auto&) {
                   auto* to = block.template producer_acquire<char>();
                   to[kHandoffBytes] = 0;
                   block.producer_commit();
                 },
                 nothing),
             {"more than kHandoffBytes"});
  check_says(error_of_both(
                 [](auto& block, auto&) {
                   block.borrow_handoffs();
                   block.template producer_acquire<float>();
                 },
                 nothing),
             {"hands over after borrow_handoffs()"});
  check_says(error_of_both(send,
                           [](auto& block) {
                             while (block.template consumer_wait<float>()) {}
                           }),
             {"call consumer_release()"});
  check_says(error_of_both(send, [](auto& block) { block.consumer_release(); }), {"call consumer_wait() first"});
  check_says(error_of_both(send,
                           [](auto& block) {
                             if (block.leader()) block.template consumer_wait<float>();
                           }),
             {"the store warp", "lane 0 at consumer_wait()", "at the end of its part"});
}

TEST_CASE("handoffs that a store part leaves are taken for it") {
  std::uint32_t passed = 0, stored = 0;
  const auto send = [&](auto& block, auto&) {
    for (int i = 0; i < 10; ++i) {
      block.template producer_acquire<float>();
      block.producer_commit();
      passed += block.leader();
    }
  };
  CHECK(error_of_both(send, [&](auto& block) { stored += block.template consumer_wait<float>() != nullptr; }).empty());
  CHECK(passed == 10);
  CHECK(stored == 32);
}

TEST_CASE("what is written behind the end of scratch memory or of operands is noticed") {
  check_says(compute_error([](auto& block, auto&) {
               auto* all = block.template scratch<char>(32 << 10);
               if (block.leader()) all[32 << 10] = 0;
             }),
             {"behind all scratch memory"});
  check_says(compute_error([](auto& block, auto&) { block.template scratch<char>(block.rank() == 200 ? 1 : 2); }),
             {"asks scratch() for another size"});
  CHECK(pack_fibers(Packs{300, 300})[299] == 43);
  CHECK(pack_fibers(Packs{300, 299})[299] == kGarbage);
  check_says(error_of<std::runtime_error>([] { pack_fibers(Packs{300, 301}); }), {"pack() wrote behind operand_bytes()"});
  const std::vector<unsigned char> few(299);
  check_says(error_of<std::runtime_error>([&] { run_fibers(Packs{300, 300}, few); }), {"pack_fibers()"});
}

TEST_CASE("a body's own exception comes through; the next block runs as ever") {
  CHECK_THROWS_AS(compute([](auto& block, auto&) {
                    block.sync();
                    if (block.rank() == 100) throw std::length_error("from a body");
                    block.sync();
                  }),
                  std::length_error);
  std::uint32_t ran = 0;
  compute([&](auto& block, auto&) {
    block.sync();
    ++ran;
  });
  CHECK(ran == 256);
}
