// Submission of work without a graph: single tasks and batches.
#include "../futures/core.hpp"
#include "../plan/task_name.hpp"
#include "runtime.hpp"

namespace flywheel {
using namespace detail;

namespace {

/// A part of a batch before it is submitted.
struct Part {
  BatchBlocks::Block block;
  std::shared_ptr<RunRecord> run;
};

/// Takes a block. While there is none it retires runs that have ended, because their blocks come back then.
BatchBlocks::Block take_block(Core& core, Priority priority) {
  for (std::uint32_t turn = 0;; ++turn) {
    if (const auto block = core.batch_blocks.try_take(priority)) return *block;
    core.dispatcher.retire_finished();
    cpu_pause(turn);
  }
}

/// The graph of a part: its tasks are independent, and its first task is the library's own, see runtime/dynamic/task_list.hpp.
std::shared_ptr<LoadedGraph> graph_of(const DeviceState& dev, const BatchBlocks::Block& block, std::size_t first,
                                      std::uint32_t count, std::uint32_t result_bytes) {
  auto graph = graph_of_message(dev, count + 1, result_bytes);
  graph->first_record = graph->constants.first_record = block.first;
  graph->first_local = static_cast<std::uint32_t>(first);
  graph->constants.root_count = count;
  return graph;
}

Part open_part(Core& core, std::size_t first, std::uint32_t count, std::uint32_t result_bytes, Priority priority) {
  const BatchBlocks::Block block = take_block(core, priority);
  std::shared_ptr<void> holds(nullptr, [&blocks = core.batch_blocks, block](void*) { blocks.give_back(block); });
  auto run = std::make_shared<RunRecord>(graph_of(core.memory.dev(), block, first, count, result_bytes));
  run->priority = static_cast<std::uint32_t>(priority == Priority::inherit ? Priority::normal : priority);
  run->root = std::make_unique<TaskRecord>(fetch_task({block.records, block.first, count}));
  run->holds = std::move(holds);
  return {block, std::move(run)};
}

/// Notes the type of the part's next task, for messages.
void note_type(LoadedGraph& graph, std::type_index type) {
  const auto known = std::ranges::find(graph.types, type);
  graph.type_numbers.push_back(static_cast<std::uint16_t>(known - graph.types.begin()));
  if (known == graph.types.end()) graph.types.push_back(type);
}

TaskHeader header_of(std::uint16_t type, std::uint32_t result_offset) {
  TaskHeader header{};
  header.type = type;
  header.priority = static_cast<std::uint8_t>(Priority::inherit);
  header.result_offset = result_offset;
  return header;
}

}  // namespace

std::shared_ptr<SingleTask> Runtime::submit_single(TaskRecord& record, std::type_index type, Priority priority) {
  Core& core = *this->core();
  record.header.type = core.batch_blocks.type_index(type);
  record.header.priority = static_cast<std::uint8_t>(Priority::inherit);
  return core.dispatcher.submit(record, type, priority);
}

std::shared_ptr<RunRecord> Runtime::run_of(TaskRecord& record, std::type_index type, std::uint32_t result_bytes) {
  Core& core = *this->core();
  const DeviceState& dev = core.memory.dev();
  if (result_bytes > dev.result_bytes)
    throw CapacityError("a result of " + type_name(type) + " takes more than Options::result_bytes: raise it");
  record.header.type = core.batch_blocks.type_index(type);
  record.header.priority = static_cast<std::uint8_t>(Priority::inherit);
  auto graph = graph_of_message(dev, 1, result_bytes);
  graph->core = this->core();  // for its listeners
  graph->single = true;
  graph->types = {type};
  graph->constants.root_count = 1;
  auto run = std::make_shared<RunRecord>(std::move(graph));
  run->root = std::make_unique<TaskRecord>(record);
  return run;
}

void Runtime::check_buffer(std::type_index type, std::size_t task, const char* name, const void* pointer) const {
  if (core()->heap.holds(pointer)) return;
  const std::string wrong = core_->engine->check_pointer(pointer);
  if (wrong.empty()) return;
  throw GraphError(task_text(static_cast<std::uint32_t>(task), type, "") + ", buffer '" + name + "': " + wrong +
                   ". Allocate it with Runtime::allocate() first.");
}

void Runtime::submit_parts(BatchParts& batch, std::type_index type, std::uint32_t result_bytes, std::size_t count,
                           const BatchOptions& options, const FillRecords& fill) {
  Core& core = *this->core();
  const TaskHeader header = header_of(core.batch_blocks.type_index(type), result_bytes ? 0 : kNoResult);
  const std::size_t most =
      result_bytes ? std::min<std::size_t>(kBatchTasks, core.memory.dev().result_bytes / result_bytes) : kBatchTasks;
  if (most == 0) throw CapacityError("a result of " + type_name(type) + " takes more than Options::result_bytes: raise it");
  const std::size_t parts = (count + most - 1) / most;
  if (options.traced) batch.tracing_ = trace_batch(parts);
  for (std::size_t p = 0, first = 0; p < parts; ++p) {
    const auto n = static_cast<std::uint32_t>((count - first + parts - p - 1) / (parts - p));  // parts of nearly one size
    Part part = open_part(core, first, n, n * result_bytes, options.priority);
    part.run->graph->types = {type};
    fill(first, n, header, part.block.records);
    start_part(batch, std::move(part.run), n, options);
    first += n;
  }
}

std::shared_ptr<TracedWork> Runtime::trace_batch(std::size_t parts) const {
  auto work = make_tracing(static_cast<std::uint32_t>(parts));
  work->of_batch = true;
  return work;
}

void Runtime::start_part(BatchParts& batch, std::shared_ptr<RunRecord> run, std::uint32_t tasks, const BatchOptions& options) {
  apply(*run, options.after);
  if (batch.tracing_) {
    batch.tracing_->graphs.push_back(run->graph);
    run->tracing = batch.tracing_;
  }
  batch.add(start(std::move(run)), tasks);
}

std::vector<Runtime::PlannedPart> Runtime::plan_parts(const BatchBuilder& tasks, std::vector<std::uint32_t>& offsets) const {
  const std::uint32_t most = core()->memory.dev().result_bytes;
  std::vector<PlannedPart> parts;
  for (std::size_t first = 0; first < tasks.size(); first += parts.back().tasks) {
    // As many tasks as a block holds, and their results a slot.
    std::uint32_t n = 0, bytes = 0;
    for (; first + n < tasks.size() && n < kBatchTasks; ++n) {
      const std::uint32_t size = tasks.entries_[first + n].result_bytes, at = (bytes + 15) / 16 * 16;
      if (size && at + size > most) break;
      offsets.push_back(size ? at : kNoResult);
      if (size) bytes = at + size;
    }
    if (n == 0) throw CapacityError("a result takes more than Options::result_bytes: raise it");
    parts.push_back({n, bytes});
  }
  return parts;
}

MixedBatch Runtime::submit_batch(const BatchBuilder& tasks, const BatchOptions& options) {
  Core& core = *this->core();
  for (const auto& [task, name, pointer] : tasks.buffers_) check_buffer(tasks.entries_[task].type, task, name, pointer);
  std::vector<std::uint16_t> types;
  for (const BatchBuilder::Entry& entry : tasks.entries_) types.push_back(core.batch_blocks.type_index(entry.type));
  MixedBatch batch;
  batch.offsets_.reserve(tasks.size());
  const std::vector<PlannedPart> parts = plan_parts(tasks, batch.offsets_);
  if (options.traced) batch.tracing_ = trace_batch(parts.size());
  std::size_t first = 0;
  for (const PlannedPart& planned : parts) {
    Part part = open_part(core, first, planned.tasks, planned.result_bytes, options.priority);
    for (std::uint32_t i = 0; i < planned.tasks; ++i) {
      const BatchBuilder::Entry& entry = tasks.entries_[first + i];
      TaskRecord& record = part.block.records[i];
      record.header = header_of(types[first + i], batch.offsets_[first + i]);
      record.header.local = static_cast<std::uint32_t>(first + i);
      std::memcpy(record.args, entry.args, kTaskArgBytes);
      note_type(*part.run->graph, entry.type);
    }
    start_part(batch, std::move(part.run), planned.tasks, options);
    first += planned.tasks;
  }
  return batch;
}

}  // namespace flywheel
