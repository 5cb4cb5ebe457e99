#include "run_slots.hpp"

#include <algorithm>

#include "../../runtime/records/inbox.hpp"

namespace flywheel::detail {

RunSlots::RunSlots(std::uint32_t count) : live_(count), generations_(count, 0), stream_next_(count, 0) {
  for (std::uint32_t slot = count; slot-- > 0;) free_.push_back(slot);
}

void RunSlots::take(const RunPtr& run) {
  run->slot = free_.back();
  free_.pop_back();
  run->generation = ++generations_[run->slot];
  run->stream_next = stream_next_[run->slot];
  live_[run->slot] = run;
  ++live_count_;
}

void RunSlots::give_back(const RunRecord& run) {
  stream_next_[run.slot] = run.stream_next;  // final since the run was collected
  free_.push_back(run.slot);
  live_[run.slot].reset();
  --live_count_;
}

std::vector<RunSlots::RunPtr> RunSlots::abandon() {
  std::vector<RunPtr> all;
  for (RunPtr& run : live_)
    if (run) all.push_back(std::move(run));
  std::ranges::fill(live_, nullptr);
  live_count_ = 0;
  return all;
}

RunConstants submission_of(const RunRecord& run) {
  const LoadedGraph& graph = *run.graph;
  RunConstants words = graph.constants;
  words.op = static_cast<std::uint32_t>(InboxOp::submit);
  words.slot = run.slot;
  words.generation = run.generation;
  words.repeat = run.repeat;
  if (run.packs) words.flags = kPhased | kPack;
  if (run.traced) words.flags |= kTraced;
  words.priority = run.priority;
  const std::uint64_t bank = graph.kind == GraphKind::dynamic ? graph.bank_address(run.bank) : 0;
  words.counters[0] = static_cast<std::uint32_t>(bank);
  words.counters[1] = static_cast<std::uint32_t>(bank >> 32);
  return words;
}

}  // namespace flywheel::detail
