// Divides a worker's shared memory among operand pages, scratch and handoffs.
#include <algorithm>
#include <mutex>

#include "../../runtime/compiled/operands.hpp"
#include "../base/error.hpp"
#include "gpu_probe.hpp"

namespace flywheel::detail {

namespace {
constexpr std::size_t in_whole_lines(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// Options::scratch_bytes, rounded up to 16. If the option has its default value, pages get what dynamic tasks need no scratch
/// for; and if the fewest do not fit beside the rest, the result is what they leave: otherwise GPUs with 99 KB of shared memory
/// per block would need an option.
std::size_t fit_scratch(bool has_operands, const Options& options, std::size_t room) {
  const std::size_t wanted = in_whole_lines(options.scratch_bytes);
  if (!has_operands || options.scratch_bytes != Options{}.scratch_bytes) return wanted;
  const std::size_t pages = std::size_t{std::max(options.operand_pages, kFewestPages)} * kPageBytes;
  const std::size_t beside = std::min(wanted, kScratchBesidePages);
  return pages < room ? std::min(beside, (room - pages) / 16 * 16) : beside;
}

/// What to set so that the pages of tasks with operands fit in `room`, beside scratch.
std::string page_remedy(const Options& options, std::size_t room) {
  const std::size_t pages = std::size_t{std::max(options.operand_pages, kFewestPages)} * kPageBytes;
  const std::string leave = options.operand_pages ? "leave Options::operand_pages at 0" : "";
  if (pages > room) return leave.empty() ? "run them on a GPU with more shared memory" : leave;
  return "set Options::scratch_bytes to at most " + std::to_string((room - pages) / 16 * 16) +
         (leave.empty() ? "" : ", or " + leave);
}

/// Options::operand_pages, or as many pages as fit in `room` beside scratch. Throws CapacityError if that is fewer than
/// tasks with operands need.
std::uint32_t fit_pages(const Options& options, std::size_t room, std::size_t scratch) {
  const std::size_t most = std::min<std::size_t>((room - scratch) / kPageBytes, kMostPages);
  const std::uint32_t pages = options.operand_pages ? options.operand_pages : static_cast<std::uint32_t>(most);
  if (pages >= kFewestPages && pages <= most) return pages;
  throw CapacityError("Options::operand_pages is " + std::to_string(options.operand_pages) + " and " + std::to_string(most) +
                      " pages of 26 KB fit beside " + std::to_string(scratch) +
                      " bytes of scratch: tasks with operands need at least " + std::to_string(kFewestPages) + "; " +
                      page_remedy(options, room));
}

std::uint32_t fit_workers(const Options& options, const GpuFacts& facts) {
  const auto most = static_cast<std::uint32_t>(facts.multiprocessors);
  if (options.workers <= most) return options.workers ? options.workers : most;
  throw CapacityError("Options::workers is " + std::to_string(options.workers) + ", but " + facts.name + " has " +
                      std::to_string(most) + " SMs and a resident kernel runs one worker on each: ask for at most " +
                      std::to_string(most));
}
}  // namespace

GpuFit fit_shared(bool has_operands, const Options& options, const GpuFacts& facts, std::size_t own_bytes) {
  const auto all = static_cast<std::size_t>(facts.shared_bytes_optin);
  const std::size_t taken = own_bytes + kHandoffs * kHandoffBytes, room = taken < all ? all - taken : 0;
  const std::size_t scratch = fit_scratch(has_operands, options, room);
  if (scratch > room)
    throw CapacityError("Options::scratch_bytes = " + std::to_string(options.scratch_bytes) + " and the kernel's own " +
                        std::to_string(taken) + " bytes exceed the " + std::to_string(all) +
                        " bytes of shared memory of a block: set it to at most " + std::to_string(room / 16 * 16));
  const std::uint32_t pages = has_operands ? fit_pages(options, room, scratch) : 0;
  const std::size_t bytes = std::size_t{pages} * kPageBytes + scratch + kHandoffs * kHandoffBytes;
  return {fit_workers(options, facts), pages, static_cast<std::uint32_t>(scratch), static_cast<std::uint32_t>(bytes)};
}

void raise_shared_limit(const void* kernel, std::size_t bytes, const SharedLimitCalls& calls) {
  static std::mutex one_at_a_time;  // between get() and set() another runtime could set more
  std::scoped_lock lock(one_at_a_time);
  if (calls.get(kernel) < bytes) calls.set(kernel, bytes);
}

}  // namespace flywheel::detail
