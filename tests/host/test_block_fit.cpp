// What of a block's shared memory goes to pages, scratch and handoffs, on GPUs of several sizes.
#include "host/error.hpp"
#include "host/gpu_probe.hpp"
#include "runtime/operands.hpp"
#include "support/expect.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

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
    CHECK(fit(kilobytes).scratch_bytes == Options{}.scratch_bytes);
  }
  CHECK(fit(99).workers == 100);
  CHECK(fit(99, {}, false).operand_pages == 0);
  CHECK(fit(99, {}, false).scratch_bytes == Options{}.scratch_bytes);
}

TEST_CASE("scratch that was asked for does not give way") {
  Options options;
  options.scratch_bytes = 40'000;
  check_says(error_of<CapacityError>([&] { fit(99, options); }),
             {"1 pages of 26 KB fit beside 40000 bytes of scratch", "at least 2", "lower Options::scratch_bytes"});
  options.scratch_bytes = 1'000;
  CHECK(fit(99, options).operand_pages == 3);
  CHECK(fit(99, options).scratch_bytes == 1'008);
  options.scratch_bytes = 400u << 10;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"Options::scratch_bytes = 409600", "lower it"});
}

TEST_CASE("as many pages as were asked for, and scratch that was not gives way to them") {
  Options options;
  options.operand_pages = 3;
  CHECK(fit(227, options).operand_pages == 3);
  CHECK(fit(163, options).operand_pages == 3);
  CHECK(fit(163, options).scratch_bytes == options.scratch_bytes);
  CHECK(fit(99, options).operand_pages == 3);
  CHECK(fit(99, options).scratch_bytes == (std::size_t{99} << 10) - kOwn - kHandoff - 3 * kPageBytes);
  options.operand_pages = 4;
  check_says(error_of<CapacityError>([&] { fit(99, options); }), {"Options::operand_pages is 4"});
  options.operand_pages = 1;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"at least 2"});
  options = {};
  options.workers = 101;
  check_says(error_of<CapacityError>([&] { fit(227, options); }), {"Options::workers is 101", "has 100 SMs", "at most 100"});
}
