#include "run_slots.hpp"

#include <algorithm>
#include <cstring>

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
  const RunPtr last = std::move(live_[run.slot]);
  last->holds.reset();
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

Message submission_of(const RunRecord& run) {
  const LoadedGraph& graph = *run.graph;
  Message message{graph.constants, {}};
  RunConstants& words = message.run;
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
  if (run.root) std::memcpy(message.carried, run.root.get(), sizeof(TaskRecord));
  else if (words.param_bytes <= kInlineBytes) std::copy_n(run.params.begin(), words.param_bytes, message.carried);
  return message;
}

}  // namespace flywheel::detail
