#include "host/inbox.hpp"

namespace flywheel {

void InboxWriter::write_submission(const RunRecord& run) {
  const LoadedGraph& graph = *run.graph;
  RunConstants words = graph.constants;
  words.op = static_cast<std::uint32_t>(InboxOp::submit);
  words.slot = run.slot;
  words.generation = run.generation;
  words.repeat = run.repeat;
  if (run.packs) words.flags = kPhased | kPack;
  if (run.traced) words.flags |= kTraced;
  words.priority = run.priority;
  const auto bank = reinterpret_cast<std::uint64_t>(static_cast<std::uint64_t*>(graph.counters) +
                                                    std::size_t{run.bank} * graph.task_count);
  words.counters[0] = static_cast<std::uint32_t>(bank);
  words.counters[1] = static_cast<std::uint32_t>(bank >> 32);
  write(words);
}

}  // namespace flywheel
