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

namespace {
/// What a follower waits for on the device: what is left of the runs and single tasks before it.
FollowedRuns followed_runs_of(const RunsBefore& before) {
  FollowedRuns all{};
  std::size_t k = 0;
  for (const auto& one : before.runs)
    all.slots[k] = static_cast<std::uint16_t>(one->slot), all.generations[k++] = one->generation;
  for (const auto& one : before.singles)
    all.slots[k] = static_cast<std::uint16_t>(one->slot), all.generations[k++] = one->generation;
  for (std::size_t i = 0; i < before.values.size(); ++i) {
    const TakenValue& value = before.values[i];
    const std::uint32_t slot = value.run ? value.run->slot : value.single->slot;
    all.values[i] = {value.from, static_cast<std::uint16_t>(slot), static_cast<std::uint8_t>(value.to),
                     static_cast<std::uint8_t>(value.bytes)};
  }
  return all;
}
}  // namespace

std::uint32_t flags_of(const RunRecord& run) {
  std::uint32_t flags = run.packs ? kPhased | kPack : run.graph->constants.flags;
  if (run.tracing) flags |= kTraced;
  if (run.before && run.before->size()) flags |= kFollows;
  if (run.before && !run.before->values.empty()) flags |= kTakesValues;
  return flags;
}

Message submission_of(const RunRecord& run) {
  const LoadedGraph& graph = *run.graph;
  Message message{graph.constants, {}};
  RunConstants& words = message.run;
  words.op = static_cast<std::uint32_t>(InboxOp::submit);
  words.slot = run.slot;
  words.generation = run.generation;
  words.repeat = run.repeat;
  words.flags = flags_of(run);
  words.priority = run.priority;
  const std::uint64_t bank = graph.kind == GraphKind::dynamic ? graph.bank_address(run.bank) : 0;
  words.counters[0] = static_cast<std::uint32_t>(bank);
  words.counters[1] = static_cast<std::uint32_t>(bank >> 32);
  if (run.root) std::memcpy(message.carried, run.root.get(), sizeof(TaskRecord));
  else if (words.param_bytes <= most_carried(words.flags)) std::copy_n(run.params.begin(), words.param_bytes, message.carried);
  if (words.flags & kFollows) put_followed_runs(message, followed_runs_of(*run.before));
  return message;
}

}  // namespace flywheel::detail
