// A GPU block emulated on the CPU, so that a task's tuned GPU parts can be held against an oracle without a GPU:
//
//   const auto operands = pack_fibers(task);
//   run_fibers(task, operands);  // what task.compute() and task.store() wrote is where the task's pointers say
//
// 256 compute threads and the 32 of the store warp are fibers on one thread. FiberBlock, FiberOperands and
// FiberWarpBlock do what GpuBlock, PageOperands and StoreBlock do on the GPU; what would hang or go wrong silently there
// is a std::runtime_error here.
#pragma once

#include "runtime/base/stamped.hpp"
#include "runtime/dynamic/task_list.hpp"
#include "support/fiber_memory.hpp"
#include "support/fiber_threads.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

struct FiberOptions {
  std::uint64_t seed = fresh_seed();        // of the order that threads run in
  std::uint32_t scratch_bytes = 32u << 10;  // as Options::scratch_bytes
  std::uint32_t pages = 3;                  // of operands, that a worker holds at once
  std::uint32_t worker = 0;
  std::uint32_t workers = 1;
  std::uint32_t iteration = 0;
  std::uint32_t stamp = 1;                 // of the words that the task writes, and of those that it waits for
  std::vector<unsigned char> params = {};  // of the run, at most kParamBytes
  const DeviceState* dev = nullptr;        // for bodies that emit() or spawn(), as run 0 of it: see TestDeviceState
  bool called_off = false;  // a task before this one has failed: spin() does not wait for words that are not there
};

/// What a block of one run works with.
struct FiberRun {
  FiberRun(const FiberOptions& options, std::span<const unsigned char> packed)
      : executor(options.seed),
        pages(executor, packed, options.pages),
        handoffs(executor),
        scratch(executor, options.scratch_bytes),
        called_off(options.called_off) {
    if (options.dev) dev = *options.dev;
    else dev.workers = options.workers;
    if (!dev.control) dev.control = &control;
    dev.scratch_bytes = options.scratch_bytes;
    if (options.params.size() > kParamBytes) executor.fail("a run's parameters are at most kParamBytes");
    RunState& state = dev.runs ? dev.runs[0] : run;
    std::copy(options.params.begin(), options.params.end(), state.params);
    header.result_offset = kNoResult;
    context = {&dev, &header, &state, {}, options.worker, {0, 0, 0, options.iteration}, options.stamp};
    executor.explain = [this] { return pages.explain() + handoffs.explain(); };
  }

  FiberExecutor executor;
  FiberPages pages;
  FiberHandoffs handoffs;
  FiberScratch scratch;
  const bool called_off;
  FiberPartials partials;
  ControlWords control{};
  RunState run{};
  DeviceState dev{};
  TaskHeader header{};
  TaskContext context;
};

/// What a part waits for is there before it begins.
template <class Ready>
bool fiber_spin(FiberRun& run, Ready&& ready) {
  const bool there = ready();
  if (!there && !run.called_off)
    run.executor.fail("spin() waits for words that nobody has put, or with another stamp than FiberOptions::stamp");
  return there;
}

/// Two stamped words in turn, each whole: no more is promised of ptx::load_two() and store_two().
struct FiberPairs {
  static StampedPair load_stamped_pair(const Stamped* at) { return {look_at(at[0]), look_at(at[1])}; }
  static void store_stamped_pair(Stamped* at, const StampedPair& pair) {
    put_stamped(at[0], pair.first.bits(), pair.first.stamp());
    put_stamped(at[1], pair.second.bits(), pair.second.stamp());
  }
};

/// The block of a compute part, and of pack(). See GpuBlock.
template <class List>
class FiberBlock : public BlockCore<CpuPlatform, List>, public FiberThreads, public FiberPairs {
 public:
  explicit FiberBlock(FiberRun& run) : BlockCore<CpuPlatform, List>(run.context), FiberThreads(run.partials), run_(run) {}

  static constexpr bool kOnGpu = true;

  template <class T>
  static T* in_scratch(T* memory) {
    return memory;
  }
  template <class T>
  T* scratch(int n) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * static_cast<std::size_t>(n);
    void* memory = run_.scratch.take(scratch_calls_++, at, used_, borrows_);
    if (!memory) this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return static_cast<T*>(memory);
  }

  void borrow_handoffs() {
    run_.handoffs.borrow(passed_on_);
    borrows_ = true;
  }

  static void load_once(std::uint32_t (&to)[4], const void* from) { std::memcpy(to, from, sizeof to); }
  static void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    fiber_multiply_add<Bf16Pair>(sums, a, b);
  }
  static void multiply_add_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    fiber_multiply_add<HalfPair>(sums, a, b);
  }

  template <class T>
  T* producer_acquire() {
    static_assert(sizeof(T) <= kHandoffBytes);
    return static_cast<T*>(run_.handoffs.producer_acquire(passed_on_));
  }
  void producer_commit() { run_.handoffs.producer_commit(passed_on_++); }

  template <class Ready>
  bool spin(Ready&& ready) const {
    return fiber_spin(run_, ready);
  }

 private:
  FiberRun& run_;
  std::size_t used_ = 0;
  std::size_t scratch_calls_ = 0;
  std::uint32_t passed_on_ = 0;
  bool borrows_ = false;
};

/// The operands of a compute part. See PageOperands.
class FiberOperands {
 public:
  explicit FiberOperands(FiberRun& run) : pages_(&run.pages), left_(run.pages.count()) {}

  const unsigned char* consumer_wait() {
    if (left_ == 0) return nullptr;
    --left_;
    return pages_->take(taken_++);
  }
  void consumer_release() {
    pages_->consumer_release(taken_, given_);
    ++given_;
  }
  static void renew() {}
  /// What a body left is given back.
  void end() {
    while (given_ < taken_) consumer_release();
    while (consumer_wait()) consumer_release();
  }

 private:
  FiberPages* pages_;
  std::uint32_t left_;
  std::uint32_t taken_ = 0;
  std::uint32_t given_ = 0;
};

/// The block of a store part. See StoreBlock.
template <class List>
class FiberWarpBlock : public BlockCore<CpuPlatform, List>, public FiberLanes, public FiberPairs {
 public:
  explicit FiberWarpBlock(FiberRun& run) : BlockCore<CpuPlatform, List>(run.context), run_(run) {}

  static constexpr bool kOnGpu = true;
  static constexpr int kWarps = 1;
  static int rank() { return lane(); }
  static constexpr int warp() { return 0; }
  static constexpr int size() { return 32; }
  static bool leader() { return rank() == 0; }
  static void sync() { FiberExecutor::current().meet({"sync() of the store warp"}); }

  template <class F>
  void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    FiberExecutor::current().meet({"for_each()"});
  }
  template <class N, class... In, class... Out, class F>
  void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    detail::stream_part<FiberVectors, 32>(rank(), n, in, out, f);
    FiberExecutor::current().meet({"stream()"});
  }
  template <class N, class... In, class F>
  void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  template <class N, class... In, class T, class Op, class F>
  T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    detail::check_exchanged<T>();
    T total = init;
    const std::uint32_t threads = detail::reduce_part<FiberVectors, 32>(rank(), n, in, total, op, f);
    total = shuffle(reduce_lanes("stream_reduce()", total, 0, threads, op), 0);
    return threads ? op(init, total) : init;
  }
  template <class Ready>
  bool spin(Ready&& ready) const {
    return fiber_spin(run_, ready);
  }
  template <class T, class Op>
  T reduce(T value, Op&& op) const {
    for (int distance = 16; distance; distance /= 2) value = op(value, shuffle_xor(value, distance));
    return value;
  }
  template <class T, class Op>
  T inclusive_scan(T value, Op&& op) const {
    detail::check_exchanged<T>();
    return scan_lanes("inclusive_scan()", value, op);
  }
  template <class T, class Op>
  T exclusive_scan(T value, Op&& op, std::type_identity_t<T> init) const {
    detail::check_exchanged<T>();
    const T before = shuffle_up("exclusive_scan()", scan_lanes("exclusive_scan()", value, op), 1);
    return leader() ? init : op(init, before);
  }
  template <class T>
  static T broadcast(T value, int from_rank) {
    detail::check_exchanged<T>();
    return shuffle(value, from_rank);
  }
  static int count(bool vote) { return std::popcount(fiber_ballot("count()", vote)); }
  static bool any(bool vote) { return count(vote) != 0; }
  static bool all(bool vote) { return count(vote) == size(); }

  template <class T>
  const T* consumer_wait() {
    if (held_)
      run_.executor.fail("the store warp takes the next handoff before it gave back the last: call consumer_release()");
    const void* place = run_.handoffs.consumer_wait(given_back_);
    held_ = place != nullptr;
    return static_cast<const T*>(place);
  }
  void consumer_release() {
    if (!held_) run_.executor.fail("the store warp gives back a handoff and holds none: call consumer_wait() first");
    run_.handoffs.consumer_release(given_back_++);
    held_ = false;
  }
  /// What a body left is given back.
  void end() {
    if (held_) consumer_release();
    while (consumer_wait<void>()) consumer_release();
  }

 private:
  FiberRun& run_;
  std::uint32_t given_back_ = 0;
  bool held_ = false;
};

/// A compute thread's part; the portable body if the task has no compute part for this block.
template <class Task>
void run_compute_fiber(const Task& task, FiberRun& run) {
  FiberBlock<TaskList<Task>> block(run);
  FiberOperands operands(run);
  if constexpr (requires { task.compute(block, operands); }) task.compute(block, operands);
  else task(block);
  run.executor.meet(kReturned);
  operands.end();
  run.executor.meet(kReturned, [&] { run.handoffs.end_compute(); });
}

template <class Task>
void run_store_fiber(const Task& task, FiberRun& run) {
  FiberWarpBlock<TaskList<Task>> block(run);
  if constexpr (requires(FiberOperands & operands) {
                  task.compute(block, operands);
                  task.store(block);
                })
    task.store(block);
  run.executor.meet(kReturned);
  block.end();
}

/// Runs the task's compute part on 256 threads and its store part, if it has one, on 32 more at the same time. Returns
/// what the body asked for: `code` is not 0 if the task failed. Throws std::runtime_error where a GPU would hang or go
/// wrong: a deadlock, lanes of a warp at different collectives, sync() without those who have returned, memory overrun.
template <class Task>
Outcome run_fibers(const Task& task, std::span<const unsigned char> packed_operands, const FiberOptions& options = {}) {
  FiberRun run(options, packed_operands);
  if constexpr (HasOperands<Task>) {
    if (packed_operands.size() != task.operand_bytes())
      run.executor.fail("these operands are not as long as operand_bytes() says: pack them with pack_fibers()");
  }
  run.executor.run(kFiberThreads, [&](std::uint32_t thread) {
    if (thread < kFiberComputeThreads) run_compute_fiber(task, run);
    else run_store_fiber(task, run);
  });
  run.scratch.check();
  return run.context.outcome;
}

/// Runs task.pack() on 256 threads. Bytes that it does not write are garbage.
template <class Task>
std::vector<unsigned char> pack_fibers(const Task& task, const FiberOptions& options = {}) {
  FiberRun run(options, {});
  const std::uint32_t bytes = task.operand_bytes();
  const GuardedBytes memory(bytes);
  run.executor.run(kFiberComputeThreads, [&](std::uint32_t) {
    FiberBlock<TaskList<Task>> block(run);
    task.pack(block, memory.data());
    run.executor.meet(kReturned);
  });
  if (memory.overrun()) run.executor.fail("pack() wrote behind operand_bytes()");
  run.scratch.check();
  return {memory.data(), memory.data() + bytes};
}

}  // namespace flywheel::testing
