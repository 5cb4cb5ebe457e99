// What of a block's shared memory goes to pages, scratch and handoffs, on GPUs of several sizes.
#include <atomic>
#include <chrono>
#include <thread>

#include "host/base/error.hpp"
#include "host/engine/gpu_probe.hpp"
#include "runtime/compiled/operands.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// One kernel's limit on one GPU, as CUDA keeps it: what is set last holds for all launches.
struct FakeKernel {
  SharedLimitCalls calls() {
    return {[this](const void*) { return limit.load(); }, [this](const void*, std::size_t bytes) { limit = bytes; }};
  }
  bool launches(std::size_t bytes) const { return bytes <= limit; }
  std::atomic<std::size_t> limit{48 << 10};
};

constexpr std::size_t kOwn = 6000, kHandoff = kHandoffs * kHandoffBytes;

/// Compute capability 9.0 has 227 KB for a block; 8.0 has 163; 8.6, 8.9 and 12.0 have 99.
GpuFacts gpu_with(int kilobytes) { return {"a GPU", 100, 1, 0, kilobytes << 10, 0}; }

GpuFit fit(int kilobytes, const Options& options = {}, bool has_operands = true) {
  const GpuFit fit = fit_shared(has_operands, options, gpu_with(kilobytes), kOwn);
  CHECK(fit.shared_bytes == fit.operand_pages * kPageBytes + fit.scratch_bytes + kHandoff);
  CHECK(fit.shared_bytes + kOwn <= static_cast<std::size_t>(kilobytes) << 10);
  CHECK(fit.scratch_bytes % 16 == 0);
  return fit;
}

}  // namespace

TEST_CASE("default options fit on every GPU that the library runs on") {
  for (const auto& [kilobytes, pages] : {std::pair(227, 6u), std::pair(163, 4u), std::pair(99, 2u)}) {
    CHECK(fit(kilobytes).operand_pages == pages);
    CHECK(fit(kilobytes).scratch_bytes == kScratchBesidePages);
  }
  CHECK(fit(99).workers == 100);
  CHECK(fit(99, {}, false).operand_pages == 0);
  CHECK(fit(99, {}, false).scratch_bytes == Options{}.scratch_bytes);
}

TEST_CASE("scratch that was asked for does not give way, and the message says how much there may be") {
  constexpr auto kMost99 = static_cast<std::uint32_t>(((99u << 10) - kOwn - kHandoff - 2 * kPageBytes) / 16 * 16);
  Options options;
  options.scratch_bytes = 40'000;
  check_says(error_of<CapacityError>([&] { fit(99, options); }),
             {"1 pages of 26 KB fit beside 40000 bytes of scratch", "at least 2",
              "set Options::scratch_bytes to at most " + std::to_string(kMost99)});
  options.scratch_bytes = kMost99 + 1;
  check_says(error_of<CapacityError>([&] { fit(99, options); }), {"to at most " + std::to_string(kMost99)});
  options.scratch_bytes = kMost99;
  CHECK(fit(99, options).scratch_bytes == kMost99);
  options.scratch_bytes = 1'000;
  CHECK(fit(99, options).operand_pages == 3);
  CHECK(fit(99, options).scratch_bytes == 1'008);
  options.scratch_bytes = 400u << 10;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"Options::scratch_bytes = 409600", "set it to at most"});
  for (const bool has_operands : {false, true}) {
    const std::uint32_t pages = has_operands ? 2 * kPageBytes : 0;
    const auto most = static_cast<std::uint32_t>(((227u << 10) - kOwn - kHandoff - pages) / 16 * 16);
    options.scratch_bytes = most + 1;
    check_says(error_of<CapacityError>([&] { fit(227, options, has_operands); }), {"to at most " + std::to_string(most)});
    options.scratch_bytes = most;
    CHECK(fit(227, options, has_operands).scratch_bytes == most);
  }
}

TEST_CASE("as many pages as were asked for, and scratch that was not gives way to them") {
  Options options;
  options.operand_pages = 3;
  CHECK(fit(227, options).operand_pages == 3);
  CHECK(fit(163, options).operand_pages == 3);
  CHECK(fit(163, options).scratch_bytes == kScratchBesidePages);
  CHECK(fit(99, options).operand_pages == 3);
  CHECK(fit(99, options).scratch_bytes == (std::size_t{99} << 10) - kOwn - kHandoff - 3 * kPageBytes);
  options.operand_pages = 4;
  check_says(error_of<CapacityError>([&] { fit(99, options); }),
             {"Options::operand_pages is 4", "leave Options::operand_pages at 0"});
  options.operand_pages = 1;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"at least 2"});
  options = {};
  options.workers = 101;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"Options::workers is 101", "has 100 SMs", "at most 100"});
}

TEST_CASE("a runtime that needs less shared memory leaves the kernel of another one its own") {
  FakeKernel kernel;
  raise_shared_limit(&kernel, 200'000, kernel.calls());
  CHECK(kernel.launches(200'000));
  raise_shared_limit(&kernel, 90'000, kernel.calls());
  CHECK(kernel.launches(90'000));
  CHECK(kernel.launches(200'000));
}

TEST_CASE("of two runtimes that start at once, the one that needs less does not undo the other's limit") {
  for (int round = 0; round < 10; ++round) {
    FakeKernel kernel;
    SharedLimitCalls slow = kernel.calls();
    slow.get = [&kernel](const void*) {
      const std::size_t limit = kernel.limit;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the other one sets its own meanwhile
      return limit;
    };
    std::thread other([&] { raise_shared_limit(&kernel, 200'000, kernel.calls()); });
    raise_shared_limit(&kernel, 90'000, slow);
    other.join();
    CHECK(kernel.launches(200'000));
  }
}
