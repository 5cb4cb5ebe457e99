// A device state for tests: all the memory that workers, inbox poller and host share, small graphs loaded into it, and the
// threads of one launch. It stands in for host/, so that runtime/ can be tested as a whole without it.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/cpu/entry.hpp"
#include "support/internals.hpp"
#include "support/threads.hpp"

namespace flywheel::testing {

/// Tasks and who waits for whom; tasks name earlier ones.
template <class List>
struct TestGraph {
  std::vector<TaskRecord> records;
  std::vector<std::vector<std::uint32_t>> after;
  std::vector<Phase> phases;  // phased graphs only

  template <class Task>
  std::uint32_t add(const Task& task, std::vector<std::uint32_t> waits = {}, Priority priority = Priority::inherit,
                    std::uint32_t result_offset = kNoResult) {
    static_assert(sizeof(Task) <= kTaskArgBytes);
    TaskRecord record{};
    record.header.type = static_cast<std::uint16_t>(List::template index_of<Task>());
    record.header.priority = static_cast<std::uint8_t>(priority);
    record.header.result_offset = result_offset;
    record.header.local = size();
    std::memcpy(record.args, &task, sizeof(Task));
    records.push_back(record);
    after.push_back(std::move(waits));
    return size() - 1;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(records.size()); }
};

struct DeviceStateShape {
  std::uint32_t workers = 3;
  std::uint32_t run_slots = 4;
  std::uint32_t queue_capacity = 256;
  std::uint32_t spawn_capacity = 8;
  std::uint32_t stream_capacity = 8;
  std::uint32_t inbox_capacity = 8;
  std::uint32_t keep_successor = 1;
};

class TestDeviceState {
 public:
  static constexpr std::uint32_t kMaxTasks = 1024, kMaxEdges = 8192, kMaxExecs = 8;

  explicit TestDeviceState(const DeviceStateShape& shape = {}) : dev{} {
    dev.workers = shape.workers;
    dev.run_slots = shape.run_slots;
    dev.result_bytes = 64;
    dev.stream_capacity = shape.stream_capacity;
    dev.queue_capacity = shape.queue_capacity;
    dev.spawn_capacity = shape.spawn_capacity;
    dev.queue_room = dev.queue_capacity;
    dev.spawn_base = kMaxTasks;
    dev.keep_successor = shape.keep_successor;
    dev.inbox_capacity = shape.inbox_capacity;
    dev.scratch_bytes = 1024;
    dev.launch = 1;
    dev.share_shift = static_cast<std::uint32_t>(std::bit_width(2 * shape.workers - 1));
    dev.spin_budget_ns = dev.phase_budget_ns = Limit{}.budget_ns;
    take_memory(shape);
  }

  /// Places the graph with counters for `banks` runs at once. What it returns starts runs of it, see
  /// submit().
  template <class List>
  RunConstants load(const TestGraph<List>& graph, std::uint32_t banks = 1) {
    RunConstants run{};
    run.op = static_cast<std::uint32_t>(InboxOp::submit);
    run.repeat = 1;
    run.priority = static_cast<std::uint32_t>(Priority::normal);
    run.exec = static_cast<std::uint32_t>(phases_.size());
    run.serial = run.exec + 1;
    run.first_record = next_record_;
    if (next_record_ + graph.size() > kMaxTasks || run.exec == kMaxExecs)
      throw std::runtime_error("the test's device state is full");
    place_edges(graph, run);
    for (std::uint32_t b = 0; b < banks; ++b) place_bank(graph, run, b == 0);
    next_record_ += graph.size();
    phases_.push_back(std::make_unique<std::vector<Phase>>(graph.phases));
    dev.execs[run.exec] = {phases_.back()->data(), nullptr, static_cast<std::uint32_t>(graph.phases.size()), 0};
    return run;
  }

  /// The same run on another bank of counters.
  RunConstants on_bank(RunConstants run, std::uint32_t first_bank, std::uint32_t bank) {
    set_bank(run, banks_[first_bank + bank].data());
    return run;
  }
  static void set_bank(RunConstants& run, std::uint64_t* counters) {
    const auto address = reinterpret_cast<std::uint64_t>(counters);
    run.counters[0] = static_cast<std::uint32_t>(address);
    run.counters[1] = static_cast<std::uint32_t>(address >> 32);
  }

  /// As InboxPoller::admit() does, for tests without an inbox poller.
  RunState& open(const RunConstants& run) {
    RunState& state = dev.runs[run.slot];
    state.line = {};
    state.line.constants = run;
    state.line.followers = followers_word(run.generation - 1, false, 0);  // the run before it in the slot has ended
    state.outstanding = run.sinks;
    return state;
  }

  DeviceState dev;

 private:
  template <class T>
  T* take(std::size_t count) {
    auto memory = std::make_shared<std::vector<T>>(count);
    memory_.push_back(memory);
    return memory->data();
  }

  void take_memory(const DeviceStateShape& shape) {
    const std::size_t watched = shape.workers + 1;
    dev.control = take<ControlWords>(1);
    dev.mailboxes = take<Mailbox>(shape.workers);
    for (std::uint32_t w = 0; w < shape.workers; ++w) dev.mailboxes[w].value = kEmptyMailbox;
    dev.queue_words = take<QueueWords>(kPriorities + 1);
    dev.queue_slots = take<std::uint64_t>(std::size_t{kPriorities} * shape.queue_capacity + shape.spawn_capacity);
    for (std::uint32_t q = 0; q <= kPriorities; ++q) {
      const bool pool = q == kPriorities;
      reset_queue(pool ? dev.control->pooled.value : dev.control->broadcast.queued[q], dev.queue_words[q],
                  dev.queue_slots + std::size_t{q} * shape.queue_capacity, pool ? shape.spawn_capacity : shape.queue_capacity,
                  pool ? shape.spawn_capacity : 0);
    }
    dev.runs = take<RunState>(shape.run_slots);
    dev.execs = take<ExecRecord>(kMaxExecs);
    dev.inline_base = kMaxTasks + shape.spawn_capacity;
    dev.batch_base = dev.inline_base + shape.run_slots;
    dev.records = take<TaskRecord>(dev.batch_base + std::size_t{kBatchBlocks} * kBatchTasks);
    dev.batch_records = take<TaskRecord>(std::size_t{kBatchBlocks} * kBatchTasks);
    dev.edges = take<Edge>(kMaxEdges);
    dev.stats = take<WorkerStats>(watched);
    dev.inbox = take<InboxEntry>(shape.inbox_capacity);
    dev.inbox_consumed = take<std::uint64_t>(1);
    dev.calls_off = take<std::uint64_t>(1);
    dev.assembly_ns = 10'000'000'000;
    dev.completions = take<CompletionSlot>(shape.run_slots);
    dev.params = take<unsigned char>(std::size_t{shape.run_slots} * kParamBytes);
    dev.results = take<unsigned char>(std::size_t{shape.run_slots} * dev.result_bytes);
    dev.stream_cells = take<StreamCell>(std::size_t{shape.run_slots} * shape.stream_capacity);
    dev.stream_consumed = take<Padded<std::uint64_t>>(shape.run_slots);
    dev.heartbeats = take<Heartbeat>(watched);
    dev.reports = take<WaitReport>(watched);
  }

  template <class List>
  void place_edges(const TestGraph<List>& graph, RunConstants& run) {
    const auto edge_to = [&](std::uint32_t task) {
      const auto predecessors = static_cast<std::uint32_t>(graph.after[task].size());
      dev.edges[next_edge_++] = {task, predecessors, graph.records[task].header.priority, 0};
    };
    const std::vector<std::uint32_t> awaited = awaited_by(graph.after);
    for (std::uint32_t task = 0; task < graph.size(); ++task) {
      TaskRecord& record = dev.records[next_record_ + task];
      record = graph.records[task];
      record.header.first_edge = next_edge_;
      for (std::uint32_t next = task + 1; next < graph.size(); ++next)
        for (const std::uint32_t before : graph.after[next])
          if (before == task) edge_to(next);
      record.header.edge_count = next_edge_ - record.header.first_edge;
      if (record.header.edge_count) copy_edge(record.header, awaited[task]);
      run.sinks += record.header.edge_count == 0;
    }
    place_roots(graph, run, edge_to);
  }

  /// Of each task, as GraphLinks::awaited(); ~0: none.
  static std::vector<std::uint32_t> awaited_by(const std::vector<std::vector<std::uint32_t>>& after) {
    std::vector<std::uint32_t> awaited(after.size(), ~0u);
    for (std::uint32_t task = 0; task < after.size(); ++task)
      for (const std::uint32_t before : after[task])
        if (awaited[before] == ~0u) {
          awaited[before] = task;
          break;
        }
    return awaited;
  }

  /// The edge to the awaited successor, or the first.
  void copy_edge(TaskHeader& header, std::uint32_t awaited) const {
    std::uint32_t which = header.first_edge;
    if (awaited != ~0u)
      while (dev.edges[which].task != awaited) ++which;
    const Edge& edge = dev.edges[which];
    header.edge_task = edge.task;
    header.edge_predecessors = edge.predecessors | (awaited != ~0u && dev.keep_successor ? TaskHeader::kAwaits : 0);
    header.edge_priority = edge.priority;
  }

  template <class List, class EdgeTo>
  void place_roots(const TestGraph<List>& graph, RunConstants& run, EdgeTo&& edge_to) {
    run.first_root = next_edge_;
    run.flags = kRootsUniform | kRootsDense;
    for (std::uint32_t task = 0; task < graph.size(); ++task) {
      if (!graph.after[task].empty()) continue;
      if (task != run.root_count) run.flags &= ~static_cast<std::uint32_t>(kRootsDense);
      if (graph.records[task].header.priority != static_cast<std::uint8_t>(Priority::inherit))
        run.flags &= ~static_cast<std::uint32_t>(kRootsUniform);
      if (run.root_count == 0) run.root_task = task;
      ++run.root_count;
      edge_to(task);
    }
    if (!graph.phases.empty()) run.flags = kPhased;
    if (next_edge_ > kMaxEdges) throw std::runtime_error("the test's device state has no room for these edges");
  }

  template <class List>
  void place_bank(const TestGraph<List>& graph, RunConstants& run, bool first) {
    std::vector<std::uint64_t> counters;
    for (const auto& waits : graph.after) counters.push_back(waits.size());
    banks_.push_back(std::move(counters));
    if (first) set_bank(run, banks_.back().data());
  }

  std::vector<std::shared_ptr<void>> memory_;
  std::vector<std::vector<std::uint64_t>> banks_;
  std::vector<std::unique_ptr<std::vector<Phase>>> phases_;
  std::uint32_t next_record_ = 0;
  std::uint32_t next_edge_ = 0;
};

}  // namespace flywheel::testing
