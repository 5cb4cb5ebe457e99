// A graph on workers that await successors, as those of a GPU do, and what happens right before their accesses to one word.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "catch.hpp"
#include "runtime/dynamic/awaited.hpp"
#include "support/internals.hpp"
#include "support/launch.hpp"

namespace flywheel::testing {

/// What happens right before an access to one word: `then` learns the number of the access, from 1.
struct Hook {
  const void* word = nullptr;
  std::function<void(std::uint32_t)> then;
  std::atomic<std::uint32_t> accesses{0};

  /// While no other thread goes on.
  void set(const void* at, std::function<void(std::uint32_t)> what) {
    word = at;
    then = std::move(what);
    accesses = 0;
  }
  void pass(const void* at) {
    if (word == at) then(++accesses);
  }
};
inline Hook on_load, on_fetch_and;
inline bool loads_yield = false;  // so that threads which share a processor come to the end of a wait

template <class T>
struct HookedRef : AtomicRef<T, Scope::device> {
  using Base = AtomicRef<T, Scope::device>;
  T* at;

  explicit HookedRef(T& word) : Base(word), at(&word) {}
  T load(Order order) const {
    on_load.pass(at);
    if (sizeof(T) == 8 && loads_yield) std::this_thread::yield();
    return Base::load(order);
  }
  T fetch_and(T value, Order order) const {
    on_fetch_and.pass(at);
    return Base::fetch_and(value, order);
  }
};

/// As CpuPlatform, but for the hooks.
struct HookedPlatform : CpuPlatform {
  using Leader = HookedPlatform;
  template <class T>
  static HookedRef<T> device(T& word) {
    return HookedRef<T>(word);
  }
};

/// Looks ahead and awaits successors, as a GPU's executor does.
struct AwaitingExecutor : CpuExecutor<HookedPlatform> {
  using CpuExecutor::CpuExecutor;
  ~AwaitingExecutor() {
    all_turns += turns;
    all_ended += ended;
  }
  static constexpr bool kPrefetches = true;
  struct Awaiter {
    AwaitingExecutor* executor;
    bool operator()(const PrefetchedTask&) const {
      ++executor->turns;
      const bool some = executor->await_successors();
      executor->ended += executor->work().awaited.ended;
      return some;
    }
  };
  Awaiter successor_awaiter() { return {this}; }
  std::uint32_t turns = 0, ended = 0;  // how often it was asked, and the tasks that it finished
  static inline std::atomic<std::uint32_t> all_turns{0}, all_ended{0};
};

struct Scene;
/// Task `id` of a scene.
struct Step {
  Scene* scene;
  std::uint32_t id, deed;
  template <class Block>
  void operator()(Block& block) const;
};
enum Deed : std::uint32_t { kNothing, kFail, kSpawn, kStop };
inline constexpr std::uint32_t kSpawned = 100;  // added to the id of the task that spawned it

using Ids = std::vector<std::uint32_t>;

/// A graph on a device state, workers on it, and what they did.
struct Scene {
  using P = HookedPlatform;
  using List = TaskList<Step>;
  TestDeviceState device;
  TestGraph<List> graph;
  RunConstants run{};
  std::map<std::uint32_t, std::function<void()>> during;  // what else happens in the body of a task
  Ids log, workers;                                       // tasks in the order in which they began, and who ran them
  std::mutex mutex;
  std::uint32_t turns = 0, ended = 0;  // of worker 0

  explicit Scene(std::uint32_t count = 1) : device(shape(count)) { unhook(); }
  ~Scene() { unhook(); }
  static void unhook() {
    on_load.set(nullptr, {});
    on_fetch_and.set(nullptr, {});
  }
  static DeviceStateShape shape(std::uint32_t count) {
    DeviceStateShape shape;
    shape.workers = count;
    return shape;
  }

  std::uint32_t add(const Ids& waits = {}, Deed deed = kNothing, Priority priority = Priority::inherit) {
    return graph.add(Step{this, graph.size(), deed}, waits, priority);
  }
  /// The launch ends after this task.
  void end_after(std::uint32_t task) {
    during[task] = [this] { leave(); };
  }
  void leave() { P::device(device.dev.control->broadcast.abort).store(1, Order::relaxed); }

  void open(std::uint32_t repeat = 1) {
    run = device.load(graph);
    run.generation = 1;
    run.repeat = repeat;
    device.open(run);
  }
  std::uint64_t& counter(std::uint32_t task) const { return run.bank()[task]; }
  std::uint64_t item(std::uint32_t task, bool skip = false) const { return Item{run.first_record + task, 0, skip}.pack(); }
  void push(std::uint32_t task, std::uint32_t level = 1, bool skip = false) {
    const Views<P> views{device.dev};
    const auto only = [&](std::uint32_t) { return item(task, skip); };
    if (!views.ready(level).push(1, only, views.wait(0))) throw std::logic_error("the queue is full");
  }
  /// As a worker that has run a predecessor of the task, and publishes it if it was the last.
  bool arrive_at(std::uint32_t task, bool fails = false) {
    const Arrival arrival = arrive<P>(counter(task), fails, predecessors(task));
    if (arrival.last) push(task, 1, arrival.failed);
    return arrival.last;
  }
  std::uint32_t predecessors(std::uint32_t task) const { return static_cast<std::uint32_t>(graph.after[task].size()); }

  void work(std::uint32_t worker = 0) {
    unsigned char scratch[16];
    AwaitingExecutor executor(device.dev, cpu_tasks<List, P>, worker, scratch);
    Worker<P, AwaitingExecutor>(device.dev, worker, executor, nullptr)();
    if (worker == 0) turns = executor.turns, ended = executor.ended;
  }
  /// The one worker runs the graph from these tasks on.
  void work_from(const Ids& tasks) {
    for (const std::uint32_t task : tasks) push(task);
    work();
  }
  /// The status code of the run, which has ended.
  std::uint32_t code() const {
    const std::uint64_t word = device.dev.completions[0].word;
    REQUIRE(word >> 32 == 1);
    return static_cast<std::uint32_t>(word);
  }
  bool is_over() const { return device.dev.completions[0].word != 0; }
  /// All counters are armed again, and nothing is left in a queue.
  void check_counters() const {
    for (std::uint32_t task = 0; task < graph.size(); ++task) CHECK(counter(task) == predecessors(task));
    for (const std::int64_t queued : device.dev.control->broadcast.queued) CHECK(queued == 0);
  }
  const WorkerStats& stats(std::uint32_t worker = 0) const { return device.dev.stats[worker]; }
};

template <class Block>
void Step::operator()(Block& block) const {
  {
    const std::scoped_lock lock(scene->mutex);
    scene->log.push_back(id);
    scene->workers.push_back(block.worker());
  }
  if (const auto found = scene->during.find(id); found != scene->during.end()) found->second();
  if (deed == kFail) block.fail(1);
  if (deed == kSpawn && !block.spawn(Step{scene, id + kSpawned, kNothing})) block.fail(2);
  if (deed == kStop && block.iteration() == 2) block.stop();
}

inline Ids from_to(std::uint32_t first, std::uint32_t last) {
  Ids ids;
  for (std::uint32_t id = first; id <= last; ++id) ids.push_back(id);
  return ids;
}

/// A chain of tasks 0 to `last`, after which the launch ends.
struct ChainOf : Scene {
  explicit ChainOf(std::uint32_t last, const std::map<std::uint32_t, Deed>& deeds = {}) {
    for (std::uint32_t i = 0; i <= last; ++i) {
      const auto deed = deeds.find(i);
      add(i ? Ids{i - 1} : Ids{}, deed == deeds.end() ? kNothing : deed->second);
    }
    end_after(last);
  }
};

/// Tasks 0 and 1 are predecessors of task 2, and task 0 may await it. The worker begins with task 0 alone; the test has task 1.
struct Join : Scene {
  static constexpr std::uint32_t kOther = 3;  // a task without dependencies
  explicit Join(std::uint32_t worker_count = 1) : Scene(worker_count) {
    add(), add();
    add({0, 1});
    add();
    end_after(2);
    open();
  }
};

}  // namespace flywheel::testing
