#include "batch.hpp"

#include "../base/back_off.hpp"
#include "core.hpp"

namespace flywheel::detail {

void BatchParts::add(Run part, std::size_t count) {
  parts_.push_back(std::move(part));
  begins_.push_back(size_);
  size_ += count;
}

std::size_t BatchParts::part_of(std::size_t i) const {
  if (i >= size_)
    throw UsageError("the batch has " + std::to_string(size_) + " tasks, and there is no task " + std::to_string(i) +
                     ": count from 0");
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, i) - begins_.begin()) - 1;
}

void BatchParts::wait() {
  for (Run& part : parts_) part.wait();
}

bool BatchParts::wait_for(std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = time_in(limit);
  return std::ranges::all_of(parts_, [&](Run& part) {
    const Clock::time_point now = Clock::now();
    return part.wait_for(end > now ? end - now : Clock::duration(0));
  });
}

bool BatchParts::done() {
  return std::ranges::all_of(parts_, [](Run& part) { return part.done(); });
}

Status BatchParts::status() {
  for (Run& part : parts_)
    if (const Status status = part.status(); status != Status::ok) return status;
  return Status::ok;
}

void BatchParts::cancel() {
  for (Run& part : parts_) part.cancel();
}

const Trace& BatchParts::trace() {
  for (Run& part : parts_) part.status();
  static const auto& none = *new Trace;  // never destroyed, as in Run::trace()
  if (!tracing_ || parts_.empty()) return none;
  const Trace* const trace = parts_.front().core_->dispatcher.trace_of(*tracing_);
  return trace ? *trace : none;
}

}  // namespace flywheel::detail
