#include "loaded_graph.hpp"

#include <cstring>

#include "../plan/task_name.hpp"

namespace flywheel::detail {

std::string LoadedGraph::task_name(std::uint32_t local) const {
  const std::uint32_t at = local - first_local;
  if (at >= task_count || types.empty()) return "task " + std::to_string(local);
  if (single) return single_task_text(types[0]);
  return task_text(local, type_of(at), stages.empty() ? std::string() : stages[stage_of.at(at)]);
}

std::shared_ptr<LoadedGraph> graph_of_message(const DeviceState& dev, std::uint32_t tasks, std::uint32_t result_bytes) {
  auto graph = std::make_shared<LoadedGraph>(nullptr);
  graph->dev = &dev;
  graph->task_count = graph->constants.sinks = tasks;
  graph->result_bytes = result_bytes;
  graph->free_banks = {0};
  graph->constants.flags = kRootsUniform | kRootsDense | kInlineRoot;
  return graph;
}

TaskRecord fetch_task(const FetchBatch& batch) {
  TaskRecord record{};
  record.header.type = kFetchBatchType;
  record.header.priority = static_cast<std::uint8_t>(Priority::inherit);
  record.header.result_offset = kNoResult;
  record.header.local = kNoLocal;
  std::memcpy(record.args, &batch, sizeof(batch));
  return record;
}

}  // namespace flywheel::detail

namespace flywheel {

std::uint32_t Executable::size() const { return graph_ ? graph_->task_count : 0; }

}  // namespace flywheel
