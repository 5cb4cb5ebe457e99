#include "runtime.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "../base/deferred_release.hpp"
#include "../base/log.hpp"
#include "../base/options_check.hpp"
#include "../futures/core.hpp"
#include "../plan/schedule.hpp"
#include "../trace/profiler.hpp"

namespace flywheel {
using namespace detail;
using Clock = std::chrono::steady_clock;

Runtime::Runtime(const KernelEntry& entry, const Options& options) : Runtime(entry, options, nullptr) {}

Runtime::Runtime(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine) {
  log::set_level(options.log_level);
  check_options(options);
  if constexpr (kHasProfiler) open_profiler_domain();
  if (!engine) engine = make_engine(entry, options);
  core_ = make_core(entry, options, std::move(engine));
  log::info("flywheel on " + device() + (core_->engine->drains() ? ", drain mode" : ", resident"));
}

namespace {
/// Keeps a core until the process ends. With CUDA_LAUNCH_BLOCKING=1, a task that never ends blocks the dispatcher's
/// thread in a launch, and that thread uses the core.
void keep_for_ever(std::shared_ptr<Core> core) {
  static auto& kept = *new std::vector<std::shared_ptr<Core>>;
  static std::mutex mutex;
  std::scoped_lock lock(mutex);
  kept.push_back(std::move(core));
}
}  // namespace

Runtime::~Runtime() {
  if (!core_) return;
  try {
    shutdown();
  } catch (const std::exception& error) {
    log::error(std::string("shutdown: ") + error.what());
  }
}

const std::shared_ptr<Core>& Runtime::core() const {
  if (!core_) throw UsageError("this Runtime was moved from: use the one that it was moved to");
  core_->require_ours();
  return core_;
}

Executable Runtime::load(const Graph& graph) { return load(graph, nullptr); }

Executable Runtime::load(const Graph& graph, const Compiled& how) {
  Executable executable = load(graph, &how);
  if (!executable.loaded()->operand_bytes) return executable;
  auto pack = make_record(executable);
  pack->packs = true;
  start(std::move(pack)).wait();
  return executable;
}

Executable Runtime::load(const Graph& graph, const Compiled* how) {
  const ProfiledScope here("load");
  for (;;) {  // repeats once per allocation that finds no room, and if another thread takes the room first
    Shortage shortage;
    if (auto loaded = core()->loader.load(graph, how, core(), shortage)) return Executable(std::move(loaded));
    const auto grow = [&] { core_->loader.grow(shortage); };
    // Arena and queues move, and suspended runs would find neither.
    if (shortage.arena_units || shortage.queue_slots) core_->dispatcher.while_empty(grow);
    else core_->dispatcher.while_parked(grow);
  }
}

std::string Runtime::describe(const Graph& graph, const Compiled& how) const {
  return describe_schedule(make_schedule(graph, workers(), how, core()->engine->warps()), graph);
}

std::shared_ptr<RunRecord> Runtime::make_record(const Executable& executable) const {
  const auto& graph = executable.loaded();
  if (!graph) throw UsageError("this Executable is empty: take the one that Runtime::load() returns");
  if (graph->core != core()) throw UsageError("this Executable was loaded by another runtime: load the graph here too");
  core_->loader.finish_upload(*graph);
  auto record = std::make_shared<RunRecord>(graph);
  std::copy(graph->params.begin(), graph->params.end(), record->params.begin());
  return record;
}

Run Runtime::start(std::shared_ptr<RunRecord> record) {
  const ProfiledScope here("submit");
  record->range = start_range("run");
  RunRecord::let_listen(record);
  core_->dispatcher.submit(record);
  return Run(core_, std::move(record));
}

std::optional<Run> Runtime::try_start(std::shared_ptr<RunRecord> record) {
  const ProfiledScope here("submit");
  record->range = start_range("run");
  RunRecord::let_listen(record);
  if (!core_->dispatcher.try_submit(record)) return std::nullopt;
  return Run(core_, std::move(record));
}

Run Runtime::start_after(CudaStream stream, std::shared_ptr<RunRecord> record) {
  const ProfiledScope here("submit");
  record->range = start_range("run");
  RunRecord::let_listen(record);
  core_->engine->after_stream(stream, [core = core_, record]() mutable {
    const DeferredRelease here;
    const std::shared_ptr<Core> ours = std::move(core);
    ours->dispatcher.submit_from_stream(std::move(record));
  });
  core_->dispatcher.expect(record);  // does nothing if it has been admitted by now
  return Run(core_, std::move(record));
}

void Runtime::apply(RunRecord& run, Repeat repeat) {
  if (repeat.times == 0) throw UsageError("repeat(0): a run has at least one pass");
  run.repeat = repeat.times;
}

void Runtime::apply(RunRecord& run, Priority priority) {
  run.priority = static_cast<std::uint32_t>(priority == Priority::inherit ? Priority::normal : priority);
}

std::shared_ptr<TracedWork> Runtime::make_tracing(std::uint32_t runs) const {
  if (!core()->options.trace_events)
    throw UsageError("there is no room for a trace: set Options::trace_events, 4096 for example");
  auto work = std::make_shared<TracedWork>();
  work->kernel_types = core_->batch_blocks.type_names();
  work->left = runs;
  return work;
}

void Runtime::apply(RunRecord& run, Traced) const {
  if (run.tracing) return;
  run.tracing = make_tracing(1);
  run.tracing->graphs = {run.graph};
}

void Runtime::apply(RunRecord& run, const Notify& notify) { run.add_listener(Listener(notify.queue, notify.tag, nullptr)); }

void Runtime::apply(RunRecord& run, const AfterRuns& after) const {
  for (const Run& one : after.runs) follow(run, one);
  for (const FutureBase& one : after.futures) follow(run, one);
}

namespace {
RunsBefore& before(RunRecord& run) {
  if (!run.before) run.before = std::make_unique<RunsBefore>();
  return *run.before;
}
template <class T>
void add_once(std::vector<T>& all, const T& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}
/// A parameter that is set again: the later value counts, whether it is known or comes with the end of a run.
void forget_value(RunRecord& run, std::uint32_t offset) {
  if (run.before) std::erase_if(run.before->values, [&](const TakenValue& value) { return value.to == offset; });
}
constexpr const char* kOtherRuntime = "after(): this run belongs to another runtime: wait for it before you submit";
}  // namespace

void Runtime::follow(RunRecord& run, const Run& one) const {
  if (!one.record_) throw UsageError("after(): this Run is empty: take the one that Runtime::submit() returns");
  if (one.core_ != core()) throw UsageError(kOtherRuntime);
  // Most parts of a large batch have ended when another batch follows it.
  if (!one.record_->ended_well()) add_once(before(run).runs, one.record_);
}

void Runtime::follow(RunRecord& run, const FutureBase& one) const {
  if (one.run_) return follow(run, Run(one.core_, one.run_));
  if (!one.task_) throw UsageError("after(): this Future is empty: take the one that Runtime::submit() returns");
  if (one.core_ != core()) throw UsageError(kOtherRuntime);
  if (!one.task_->ended_well()) add_once(before(run).singles, one.task_);
}

void Runtime::take_value(RunRecord& run, const Run& of, std::uint64_t graph, std::uint32_t from, std::uint32_t to,
                         std::uint32_t bytes) {
  const LoadedGraph& source = *of.record_->graph;
  if (graph != source.graph_id)
    throw UsageError("set(): this result belongs to a task of another graph: name a task of the graph of that run");
  if (from + bytes > source.result_bytes)
    throw UsageError("set(): this result belongs to a task that was added after load(): load the graph again");
  forget_value(run, to);
  before(run).values.push_back({of.record_, nullptr, from, to, bytes});
}

void Runtime::take_value(RunRecord& run, const FutureBase& of, std::uint32_t to, std::uint32_t bytes) {
  forget_value(run, to);
  before(run).values.push_back({of.run_, of.task_, 0, to, bytes});
}

void Runtime::check_param(const RunRecord& run, std::uint32_t graph, std::uint32_t offset, std::size_t bytes) {
  if (graph != static_cast<std::uint32_t>(run.graph->graph_id))
    throw UsageError("set(): this parameter belongs to another graph: take the one that Graph::param() of this one gave");
  if (offset + bytes > run.graph->params.size())
    throw UsageError("set(): this parameter was added after load(): load the graph again");
}

void Runtime::set_param(RunRecord& run, std::uint32_t graph, std::uint32_t offset, const void* value, std::size_t bytes) {
  check_param(run, graph, offset, bytes);
  forget_value(run, offset);
  std::memcpy(run.params.data() + offset, value, bytes);
}

void Runtime::yield() { core()->dispatcher.yield(); }

Pause::Pause(Runtime& runtime) : core_(runtime.core()) { core_->dispatcher.pause(); }

Pause::~Pause() {
  if (core_->is_ours()) core_->dispatcher.unpause();  // in a child of fork() there is no kernel to bring back
}

bool Runtime::on_gpu() const { return core()->engine->is_gpu(); }
std::uint32_t Runtime::workers() const { return core()->engine->workers(); }
std::string Runtime::device() const { return core()->engine->name(); }

void Runtime::shutdown() {
  if (core_ && !core_->is_ours()) return;
  const std::string stays = core()->dispatcher.shutdown(core_->options.shutdown_timeout);
  if (!core_->callbacks.wait_until_called(Clock::now() + core_->options.shutdown_timeout))
    log::error(
        "a callback of Run::on_done(), or a coroutine in it, has not returned within Options::shutdown_timeout. What it "
        "uses must stay alive.");
  if (stays.empty()) return;
  log::error("the kernel did not stop within Options::shutdown_timeout: " + stays +
             ". A body that runs for longer must look at block.cancelled(). Its memory stays taken until the process ends.");
  core_->memory.leak();
  core_->heap.leak();
  if (core_->dispatcher.let_go_if_stuck()) keep_for_ever(core_);
}

}  // namespace flywheel
