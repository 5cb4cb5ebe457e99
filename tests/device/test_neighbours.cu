// Other processes on the same GPU die, fill its memory or are killed, and the own process is stopped: work goes on.
#include <cuda_runtime_api.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "catch.hpp"
#include "support/child.hpp"
#include "support/graph_driver.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

__global__ void trap() { __trap(); }
__global__ void spin_for_ever(volatile std::uint32_t* word) {
  while (!*word) {}
}

/// Programs' work in this process: graphs of dependent tasks, phases and streams, again and again, all results checked.
class SteadyWork {
 public:
  SteadyWork() : bench_(on_gpu("off"), 1024), thread_([this](std::stop_token stop) { work(stop); }) {}
  /// Waits for some more rounds; false if they do not come.
  bool goes_on() {
    const std::uint64_t before = rounds_;
    return eventually([&] { return rounds_ >= before + 20 || wrong_; }, std::chrono::seconds(30)) && !wrong_;
  }
  Bench& bench() { return bench_; }

 private:
  void work(const std::stop_token& stop) {
    Graph dynamic, phased;
    const auto first = dynamic.add(Square{12});
    for (int i = 0; i < 300; ++i) dynamic.add(Count{bench_.at(0)}, after(first));
    dynamic.add(EmitRange{0, 600}, after(first));
    for (int phase = 0; phase < 5; ++phase) {
      if (phase) phased.phase();
      for (int i = 0; i < 200; ++i) phased.add(Count{bench_.at(1)});
    }
    const Executable executables[] = {bench_.runtime.load(dynamic), bench_.runtime.load(phased)};
    while (!stop.stop_requested() && !wrong_) {
      Run one = bench_.runtime.submit(executables[0]), other = bench_.runtime.submit(executables[1], repeat(3));
      std::uint32_t next = 0;
      while (const auto value = one.next<std::uint32_t>()) wrong_ += *value != next++;
      wrong_ += next != 600 || one.get(first) != 144 || other.status() != Status::ok;
      ++rounds_;
      const auto rounds = static_cast<std::uint32_t>(rounds_);
      wrong_ += bench_.get(0) != 300 * rounds || bench_.get(1) != 3000 * rounds;
    }
  }

  std::atomic<std::uint64_t> rounds_{0};
  std::atomic<std::uint32_t> wrong_{0};
  Bench bench_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("child: a neighbour whose kernel traps", "[.child]") {
  trap<<<264, 128>>>();
  REQUIRE(cudaDeviceSynchronize() != cudaSuccess);
  std::puts("my context is dead");
}

TEST_CASE("child: a neighbour that takes all memory", "[.child]") {
  std::size_t taken = 0;
  void* memory = nullptr;
  for (std::size_t piece = std::size_t{8} << 30; piece >= 1u << 20; piece /= 2)
    while (cudaMalloc(&memory, piece) == cudaSuccess) taken += piece;
  std::printf("all memory is mine: %zu MiB\n", taken >> 20);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

TEST_CASE("child: a neighbour whose kernel never ends", "[.child]") {
  std::uint32_t* word = nullptr;
  REQUIRE(cudaMalloc(&word, sizeof(*word)) == cudaSuccess);
  REQUIRE(cudaMemset(word, 0, sizeof(*word)) == cudaSuccess);
  spin_for_ever<<<264, 256>>>(word);
  cudaDeviceSynchronize();
}

TEST_CASE("neighbours that trap, are killed, or take all memory leave the runtime alone") {
  SteadyWork work;
  REQUIRE(work.goes_on());
  for (int i = 0; i < 2; ++i) {
    const ChildResult result = run_child("child: a neighbour whose kernel traps", std::chrono::seconds(60));
    check_child(result);
    check_says(result.output, {"my context is dead"});
    CHECK(work.goes_on());
  }
  const ChildResult killed = run_child("child: a neighbour whose kernel never ends", std::chrono::seconds(4));
  CHECK(killed.timed_out);
  CHECK(work.goes_on());
}

TEST_CASE("with all memory taken by a neighbour, work goes on and an allocation says what is wrong") {
  SteadyWork work;
  REQUIRE(work.goes_on());
  ChildResult result;
  std::jthread neighbour([&] { result = run_child("child: a neighbour that takes all memory", std::chrono::seconds(60)); });
  std::size_t free_bytes = 0, all_bytes = 0;
  const bool full = eventually([&] { return cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess && free_bytes < 64u << 20; },
                               std::chrono::seconds(50));
  const bool before = work.goes_on();
  const std::string message =
      error_of<CapacityError>([&] { work.bench().runtime.allocate<unsigned char>(std::size_t{4} << 30); });
  const bool after = work.goes_on();
  neighbour.join();  // assertions are for one thread at a time
  check_child(result);
  CHECK((full && before && after));
  check_says(message, {"no 4294967296 bytes", "MiB are free", "another program"});
  CHECK(work.goes_on());
}

TEST_CASE("child: a program that is killed in the middle of its work", "[.child]") {
  Bench bench(on_gpu("off"));
  std::puts("resident");
  for (std::uint32_t round = 0;; ++round) {
    bench.runtime.submit(std::vector<Count>(20'000, Count{bench.at(round % 8)})).wait();
    if (round != 3) continue;
    std::puts("at work");
    std::fflush(stdout);
  }
}

// FLYWHEEL_KILLS says how often; the bar is 50 times.
TEST_CASE("a program that is killed while its kernel is resident leaves nothing, and the next one starts") {
  const std::uint64_t kills = number_from("FLYWHEEL_KILLS", 3);
  SteadyWork work;
  REQUIRE(work.goes_on());
  std::size_t free_before = 0, free_after = 0, all_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_before, &all_bytes) == cudaSuccess);
  for (std::uint64_t i = 0; i < kills; ++i) {
    const ChildResult result =
        run_child("child: a program that is killed in the middle of its work", std::chrono::seconds(60), {}, "at work");
    INFO(result.output);
    REQUIRE_FALSE(result.timed_out);
    REQUIRE(result.status == 128 + SIGKILL);
    REQUIRE(work.goes_on());
  }
  CHECK(eventually([&] { return cudaMemGetInfo(&free_after, &all_bytes) == cudaSuccess && free_after >= free_before; },
                   std::chrono::seconds(10)));
  std::printf("%llu programs killed, %zu MiB free before and %zu after\n", static_cast<unsigned long long>(kills),
              free_before >> 20, free_after >> 20);
}

// FLYWHEEL_STOP_SECONDS says for how long; 40 s are longer than every limit of Options.
TEST_CASE("child: a process that is stopped and goes on", "[.child]") {
  const std::uint64_t seconds = number_from("FLYWHEEL_STOP_SECONDS", 3);
  SteadyWork work;
  REQUIRE(work.goes_on());
  Graph graph;
  graph.add(EmitRange{0, 3'000'000});  // more than the ring holds: the task waits for the host
  Run stream = work.bench().runtime.submit(work.bench().runtime.load(graph));
  REQUIRE(stream.next<std::uint32_t>() == 0u);
  const std::string me = std::to_string(getpid());
  const std::string stopper = "(kill -STOP " + me + "; sleep " + std::to_string(seconds) + "; kill -CONT " + me + ") &";
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(std::system(stopper.c_str()) == 0);
  REQUIRE(eventually([&] { return std::chrono::steady_clock::now() - before > std::chrono::seconds(seconds); },
                     std::chrono::seconds(seconds + 10)));
  std::uint32_t next = 1;
  while (const auto value = stream.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 3'000'000);
  CHECK(work.goes_on());
  std::puts("nothing was lost");
}

TEST_CASE("a process that is stopped for long loses nothing") {
  const std::chrono::seconds limit(60 + number_from("FLYWHEEL_STOP_SECONDS", 3));
  const ChildResult result = run_child("child: a process that is stopped and goes on", limit);
  check_child(result);
  check_says(result.output, {"nothing was lost"});
}
