#include "device_state_memory.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <string>

#include "../../runtime/compiled/operands.hpp"
#include "../base/error.hpp"
#include "../engine/thrown_texts.hpp"

namespace flywheel::detail {

namespace {
/// The value rounded up to a power of two. Throws CapacityError unless it is in 1 to `most`.
std::uint32_t power_of_two(std::uint32_t value, const char* option, std::uint32_t most) {
  if (value == 0 || value > most)
    throw CapacityError(std::string("Options::") + option + " is " + std::to_string(value) + ": choose 1 to " +
                        std::to_string(most));
  return std::bit_ceil(value);
}

/// Ticks of the worker's clock between the fetches of two pages, so that all workers together fetch at `pace` times the
/// rated memory speed; 0 if the pace or the rated speed is not limited or not known.
std::uint32_t page_ticks(const Engine& engine, double pace) {
  constexpr double kSlowest = 0.01;
  if (pace != 0 && !(pace >= kSlowest))
    throw CapacityError("Options::tuning.operand_pace is " + std::to_string(pace) +
                        ": choose a multiple of the memory's rated speed, from 0.01 on, or 0 for no limit");
  const double bytes = pace * engine.bytes_of_tick() / engine.workers();  // that one worker may fetch per tick
  return bytes > 0 ? static_cast<std::uint32_t>(kPageBytes / bytes) : 0;
}

std::uint64_t in_ns(std::chrono::milliseconds time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

bool wants_checks(const Options& options) {
  const char* text = std::getenv("FLYWHEEL_CHECK");
  const std::string wish = text ? text : "";
  if (!wish.empty() && wish != "0" && wish != "1")
    throw UsageError("FLYWHEEL_CHECK is '" + wish + "': set it to 1 to check what tasks do with operands, or unset it");
  return options.check_operands || wish == "1";
}

constexpr std::uint64_t kWaitWithChecks = 4;
constexpr std::uint32_t kSingleSlots = 1024;  // single tasks in flight at once; further ones wait in submit()
constexpr std::uint32_t kInboxEntries = 256;  // for the messages of the dispatcher

constexpr std::uint32_t kMostQueued = 1u << 28;
constexpr std::uint64_t kFirstArenaBytes = std::uint64_t{32} << 20;
constexpr std::uint32_t kFirstQueue = 1u << 17, kMostAtStart = 1u << 20;

/// Slots of a ready queue at the start. A limit of up to kMostAtStart is a wish for that size: runs together may have as
/// many tasks.
std::uint32_t first_queue(std::uint32_t limit) { return limit <= kMostAtStart ? limit : kFirstQueue; }

/// Units of the arena at the start: kFirstArenaBytes, or twice what the limits in Options allow if that is less.
std::uint64_t first_arena_units(const Options& o) {
  const std::uint64_t graphs = o.max_executables, edges = o.max_edges / 8, banks = o.overlap * (graphs + o.max_tasks / 16);
  return std::min(2 * (o.max_tasks + edges + banks + 3 * graphs), kFirstArenaBytes / sizeof(TaskRecord));
}

void set_budgets(DeviceState& dev, const Options& o) {
  dev.assembly_ns = in_ns(o.tuning.yield_patience);
  dev.spin_budget_ns = in_ns(o.spin_budget);
  dev.phase_budget_ns = dev.spin_budget_ns + in_ns(o.stall_limit);
  if (!wants_checks(o)) return;
  dev.check_ns = std::max<std::uint64_t>(in_ns(o.check_budget), 1);
  // A worker that waits for a task which itself waits in block.spin() began to wait earlier. Its longer budget lets
  // that task report first, and the task's report says more.
  dev.phase_budget_ns = std::min(dev.phase_budget_ns, kWaitWithChecks * dev.check_ns);
}

DeviceState sizes(const Engine& engine, const Options& o) {
  DeviceState dev{};
  dev.workers = engine.workers();
  dev.run_slots = power_of_two(o.max_runs, "max_runs", kMaxRunSlots);
  dev.result_bytes = (o.result_bytes + 63) / 64 * 64;
  dev.stream_capacity = power_of_two(o.stream_capacity, "stream_capacity", 1u << 20);
  dev.queue_room = first_queue(power_of_two(o.queue_capacity, "queue_capacity", kMostQueued));
  dev.single_slots = kSingleSlots;
  dev.queue_capacity = std::bit_ceil(dev.queue_room + dev.single_slots);
  dev.spawn_capacity = power_of_two(o.spawn_capacity, "spawn_capacity", 1u << 24);
  dev.spawn_base = 0;
  dev.inline_base = dev.spawn_base + dev.spawn_capacity;
  dev.batch_base = dev.inline_base + dev.run_slots + dev.single_slots;
  dev.share_shift = static_cast<std::uint32_t>(std::bit_width(2 * dev.workers - 1));
  dev.keep_successor = o.tuning.keep_successor;
  dev.inbox_capacity = std::bit_ceil(kInboxEntries + dev.single_slots);
  dev.scratch_bytes = engine.scratch_bytes(o);
  dev.page_count = engine.operand_pages();
  dev.page_window = std::clamp(o.tuning.operand_window / kPageBytes, 1u, std::max(dev.page_count, 1u));
  dev.page_ticks = page_ticks(engine, o.tuning.operand_pace);
  dev.bulk_copies = o.tuning.bulk_copies;
  dev.trace.capacity = o.trace_events;
  set_budgets(dev, o);
  return dev;
}
}  // namespace

DeviceStateMemory::DeviceStateMemory(Engine& engine, const DeviceState& sizes) : engine_(engine), dev_(sizes) {}

/// Delegates to the private constructor, so that the object is complete: if an allocation below throws, the destructor
/// runs and frees what was allocated before.
DeviceStateMemory::DeviceStateMemory(Engine& engine, const Options& options)
    : DeviceStateMemory(engine, sizes(engine, options)) {
  const std::size_t runs = dev_.run_slots, slots = runs + dev_.single_slots,
                    watched = dev_.workers + 1;  // the workers and the inbox poller
  power_of_two(options.max_tasks, "max_tasks", 1u << 30);
  power_of_two(options.max_waiting, "max_waiting", 1u << 31);
  dev_.control = device<ControlWords>(1);
  dev_.mailboxes = device<Mailbox>(dev_.workers);
  dev_.queue_words = device<QueueWords>(kPriorities + 1);
  dev_.queue_slots = device<std::uint64_t>(queue_slots());
  dev_.runs = device<RunState>(slots);
  arena_units_ = first_graph_unit() + first_arena_units(options);
  point_at_arena(device<TaskRecord>(arena_units_));
  dev_.stats = device<WorkerStats>(watched);
  dev_.progress = device<Padded<std::uint64_t>>(dev_.workers);
  if (options.trace_events) take_trace();
  dev_.inbox = shared<InboxEntry>(dev_.inbox_capacity);
  dev_.inbox_consumed = shared<std::uint64_t>(16);
  dev_.calls_off = shared<std::uint64_t>(16);
  dev_.completions = shared<CompletionSlot>(slots);
  dev_.params = shared<unsigned char>(runs * kParamBytes);
  dev_.results = shared<unsigned char>(runs * dev_.result_bytes);
  dev_.stream_cells = shared<StreamCell>(runs * dev_.stream_capacity);
  dev_.stream_consumed = shared<Padded<std::uint64_t>>(runs);
  dev_.batch_records = shared<TaskRecord>(kBatchBlocks * kBatchTasks);
  dev_.heartbeats = shared<Heartbeat>(watched);
  dev_.reports = shared<WaitReport>(watched);
  if (!engine.drains()) *(dev_.host_awake_ns = shared<std::uint64_t>(16)) = 1;
  fill_queues();
  empty_mailboxes();
}

void DeviceStateMemory::take_trace() {
  const std::size_t tracks = std::size_t{dev_.workers} * kTraceRoles;
  dev_.trace.tracks = device<TraceTrack>(tracks);
  dev_.trace.events = device<TraceEvent>(tracks * dev_.trace.capacity);
}

DeviceStateMemory::~DeviceStateMemory() {
  forget_what_bodies_threw(dev_);
  if (leaked_) return;  // seq_cst by default; relaxed would do, see leak()
  for (void* memory : device_) engine_.free_device(memory);
  for (void* memory : shared_) engine_.free_shared(memory);
}

template <class T>
T* DeviceStateMemory::device(std::size_t count) {
  device_.push_back(engine_.allocate_device(count * sizeof(T)));
  return static_cast<T*>(device_.back());
}

template <class T>
T* DeviceStateMemory::shared(std::size_t count) {
  shared_.push_back(engine_.allocate_shared(count * sizeof(T)));
  return static_cast<T*>(shared_.back());
}

void DeviceStateMemory::fill_queues() {
  std::vector<QueueWords> words(kPriorities + 1);
  std::vector<std::uint64_t> slots(queue_slots());
  std::int64_t queued = 0, pooled = 0;
  for (std::uint32_t level = 0; level < kPriorities; ++level)
    reset_queue(queued, words[level], slots.data() + std::size_t{level} * dev_.queue_capacity, dev_.queue_capacity);
  reset_queue(pooled, words[kPriorities], slots.data() + std::size_t{kPriorities} * dev_.queue_capacity, dev_.spawn_capacity,
              dev_.spawn_capacity);
  engine_.copy_to_device(dev_.queue_words, words.data(), words.size() * sizeof(QueueWords));
  engine_.copy_to_device(dev_.queue_slots, slots.data(), slots.size() * sizeof(std::uint64_t));
  engine_.copy_to_device(&dev_.control->pooled.value, &pooled, sizeof(pooled));
}

/// Records, edges and executables lie in one arena, so that a graph takes one piece of it.
void DeviceStateMemory::point_at_arena(void* memory) {
  dev_.records = static_cast<TaskRecord*>(memory);
  dev_.edges = static_cast<Edge*>(memory);
  dev_.execs = static_cast<ExecRecord*>(memory);
}

/// Allocates a piece that takes the place of `old`, which stays until the caller frees it.
void* DeviceStateMemory::replace(void* old, std::size_t bytes) {
  void* memory = engine_.allocate_device(bytes);
  std::ranges::replace(device_, old, memory);
  return memory;
}

void DeviceStateMemory::grow_arena(std::uint64_t units) {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 32) / (sizeof(TaskRecord) / sizeof(Edge));
  if (arena_units_ == kMost)
    throw CapacityError("loaded graphs take more than " + std::to_string(kMost * sizeof(TaskRecord) >> 30) +
                        " GiB: drop executables that are no longer needed, or split the graph");
  units = std::min(units, kMost);
  TaskRecord* const old = dev_.records;
  point_at_arena(replace(old, units * sizeof(TaskRecord)));
  engine_.copy_on_device(dev_.records, old, arena_units_ * sizeof(TaskRecord));
  arena_units_ = units;
  engine_.free_device(old);
}

void DeviceStateMemory::grow_queues(std::uint64_t slots) {
  if (slots > kMostQueued)
    throw CapacityError("a ready queue has " + std::to_string(kMostQueued) + " slots at most: split the graph");
  const DeviceState before = dev_;
  dev_.queue_room = static_cast<std::uint32_t>(std::bit_ceil(slots));
  dev_.queue_capacity = std::bit_ceil(dev_.queue_room + dev_.single_slots);
  std::uint64_t* const old = dev_.queue_slots;
  try {
    dev_.queue_slots = static_cast<std::uint64_t*>(replace(old, queue_slots() * sizeof(std::uint64_t)));
  } catch (...) {
    dev_.queue_room = before.queue_room;
    dev_.queue_capacity = before.queue_capacity;
    throw;
  }
  fill_queues();
  engine_.free_device(old);
}

void DeviceStateMemory::empty_mailboxes() {
  const std::vector<Mailbox> empty(dev_.workers, Mailbox{kEmptyMailbox});
  engine_.copy_to_device(dev_.mailboxes, empty.data(), empty.size() * sizeof(Mailbox));
}

}  // namespace flywheel::detail
