#include "options_check.hpp"

#include <cstdlib>
#include <limits>
#include <string>

#include "../../runtime/compiled/operands.hpp"
#include "error.hpp"

namespace flywheel::detail {

namespace {
using Number = long long;

[[noreturn]] void refuse(const char* option, const std::string& value, const std::string& choice) {
  throw CapacityError(std::string("Options::") + option + " is " + value + ": choose " + choice);
}

void check_range(const char* option, Number value, Number least, Number most) {
  if (value < least || value > most)
    refuse(option, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

/// Limits a time to ten years: times become 64-bit counts of nanoseconds, which are added and multiplied later.
void check_time(const char* option, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 365 * 10);
  if (time.count() < 0 || time > kMost)
    refuse(option, std::to_string(time.count()) + " ms", "0 to " + std::to_string(kMost.count()) + " ms, which is ten years");
}

void check_times(const Options& o) {
  check_time("park_after", o.park_after);
  check_time("yield_every", o.yield_every);
  check_time("tuning.yield_patience", o.tuning.yield_patience);
  check_time("tuning.yield_gap", std::chrono::floor<std::chrono::milliseconds>(o.tuning.yield_gap));
  check_time("start_timeout", o.start_timeout);
  check_time("stall_limit", o.stall_limit);
  check_time("spin_budget", o.spin_budget);
  check_time("check_budget", o.check_budget);
  check_time("shutdown_timeout", o.shutdown_timeout);
}

/// Values that no enumerator has come from a cast.
void check_choices(const Options& o) {
  check_range("target", static_cast<Number>(o.target), 0, static_cast<Number>(Target::cpu));
  check_range("mode", static_cast<Number>(o.mode), 0, static_cast<Number>(Mode::drain));
}

void check_sizes(const Options& o) {
  constexpr Number kMostBytes = 1 << 30, kMostRecords = 1 << 30;
  constexpr std::size_t kMostHeap = ~std::size_t{0} >> 1;  // the heap rounds it up
  check_range("device", o.device, 0, std::numeric_limits<int>::max());
  if (o.heap_bytes > kMostHeap) refuse("heap_bytes", std::to_string(o.heap_bytes), "0 to " + std::to_string(kMostHeap));
  check_range("max_edges", o.max_edges, 1, kMostRecords);
  check_range("max_executables", o.max_executables, 1, kMostRecords);
  check_range("overlap", o.overlap, 1, 1 << 15);
  check_range("trace_events", o.trace_events, 0, 1 << 24);
  check_range("stream_unread", o.stream_unread, 1, kMostRecords);
  check_range("result_bytes", o.result_bytes, 0, kMostBytes);
  check_range("scratch_bytes", o.scratch_bytes, 0, kMostBytes);
}

/// CPU workers use no pages, but these values are checked for them too: they would be wrong on every GPU.
void check_pages(const Options& o) {
  if (o.operand_pages && (o.operand_pages < kFewestPages || o.operand_pages > kMostPages))
    refuse("operand_pages", std::to_string(o.operand_pages),
           std::to_string(kFewestPages) + " to " + std::to_string(kMostPages) + ", or 0 for as many as fit");
  if (o.tuning.operand_window == 0)
    refuse("tuning.operand_window", "0", std::to_string(kPageBytes) + " bytes, which is one page, or more");
}
}  // namespace

Mode mode_of_environment() {
  const char* text = std::getenv("FLYWHEEL_MODE");
  const std::string word = text ? text : "";
  if (word.empty()) return Mode::automatic;
  if (word == "drain") return Mode::drain;
  if (word == "resident") return Mode::resident;
  throw UsageError("FLYWHEEL_MODE is '" + word + "': set it to resident or drain, or unset it");
}

std::string scratch_of_no_gpu(const Options& options) {
  constexpr std::uint32_t kMostShared = 227u << 10;  // of a block, on compute capability 9.0 and 10.0; others have less
  constexpr std::uint32_t kMost = kMostShared - kHandoffs * kHandoffBytes;
  if (options.scratch_bytes <= kMost) return "";
  return "Options::scratch_bytes is " + std::to_string(options.scratch_bytes) +
         ": CPU workers have it, but no GPU has more than " + std::to_string(kMost) +
         ". For a program that is to run on a GPU, set it to less.";
}

void check_options(const Options& options) {
  check_choices(options);
  check_times(options);
  check_sizes(options);
  check_pages(options);
  if (options.mode == Mode::automatic) mode_of_environment();
}

}  // namespace flywheel::detail
