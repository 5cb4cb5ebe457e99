// Operands on the GPU: pages through bulk copies and cp.async, few pages and many, small windows and large.
#include <cstdio>

#include "support/compiled_mixes.hpp"
#include "support/expect.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// How pages come.
struct Way {
  bool bulk;
  std::uint32_t pages;
  std::uint32_t window;
};

constexpr std::uint32_t kHuge = 1u << 30;
constexpr Way kWays[] = {
    {true, 0, 48u << 10},  {true, 2, 16u << 10}, {true, 2, kHuge},     {true, 3, 48u << 10},
    {true, 3, 16u << 10},  {true, 0, kHuge},     {true, 0, 16u << 10}, {false, 0, 48u << 10},
    {false, 2, 16u << 10}, {false, 3, kHuge},    {false, 0, kHuge},
};

Options options_of(const Way& way) {
  Options options;
  options.target = Target::gpu;
  options.log_level = "off";
  options.tuning.bulk_copies = way.bulk;
  options.operand_pages = way.pages;
  options.tuning.operand_window = way.window;
  return options;
}

template <class Action>
void each_way(const char* what, Action&& action) {
  for (const Way& way : kWays) {
    INFO(what << ": " << (way.bulk ? "bulk copies, " : "cp.async, ") << way.pages << " pages, window " << way.window);
    Runtime runtime = start<Packed, Count, Fail, StopAt, Mixer>(options_of(way));
    const auto begin = std::chrono::steady_clock::now();
    action(runtime);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%-28s %-11s %2u pages, window %7u KB: %7.1f ms\n", what, way.bulk ? "bulk copies" : "cp.async", way.pages,
                way.window >> 10, ms);
  }
}

}  // namespace

TEST_CASE("operands: every byte of every page, warps at paces of their own") {
  each_way("every byte", [](Runtime& runtime) {
    OperandRuns even(runtime, 500, Walk::all, 0), uneven(runtime, 300, Walk::all, 400), late(runtime, 300, Walk::late, 200);
    for (const std::uint32_t passes : {1u, 7u, 2u}) {
      even.submit(passes).wait();
      uneven.submit(passes).wait();
      late.submit(passes).wait();
    }
    even.check();
    uneven.check();
    late.check();
  });
}

TEST_CASE("operands: pages that a compute part keeps or does not take are given back for it") {
  each_way("kept or not taken", [](Runtime& runtime) {
    OperandRuns hoarding(runtime, 300, Walk::hoards, 100);  // two pages each, which all runtimes have
    hoarding.submit(5).wait();
    hoarding.check();
    OperandRuns none(runtime, 200, Walk::none, 0), all(runtime, 100, Walk::all, 0);
    none.submit(5).wait();
    CHECK(none.seen().computes == 1000);
    CHECK(none.seen().sum == 0);
    all.submit(3).wait();
    all.check();
  });
}

TEST_CASE("operands: a run that stops, fails or is cancelled throws away what was fetched ahead") {
  each_way("thrown away", [](Runtime& runtime) {
    ThrownAway runs(runtime, 300, 197);
    for (int round = 0; round < 10; ++round) runs.round(std::chrono::microseconds(round * 150));
    runs.check();
  });
}

TEST_CASE("operands: compiled graphs loaded and dropped while others run") {
  each_way("loaded and dropped", [](Runtime& runtime) {
    OperandRuns kept(runtime, 150, Walk::all, 30);
    for (int round = 0; round < 30; ++round) {
      OperandRuns passing(runtime, 20 + 7 * static_cast<std::uint32_t>(round), Walk::all, 0);
      Run a = kept.submit(2), b = passing.submit(2);
      a.wait();
      b.wait();
      passing.check();
    }
    kept.check();
  });
}

TEST_CASE("compute parts: reduce() in one task after the other, warps at paces of their own") {
  Options options = options_of(kWays[0]);
  Runtime runtime = start<Summed>(options);
  Buffer<std::uint32_t> wrong = runtime.allocate<std::uint32_t>(1);
  Graph graph;
  constexpr std::uint32_t kTasks = 2000, kPasses = 2000;
  for (std::uint32_t i = 0; i < kTasks; ++i) graph.add(Summed{wrong.data(), i});
  runtime.submit(runtime.load(graph, compiled), repeat(kPasses)).wait();
  std::printf("reduce(): %u tasks x %u passes, %u threads got a wrong sum\n", kTasks, kPasses, wrong.read()[0]);
  CHECK(wrong.read()[0] == 0);
}
