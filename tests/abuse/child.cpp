#include "abuse/child.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "abuse/checks.hpp"

namespace flywheel::abuse {

namespace {
bool is_child = false;

const std::vector<std::string> kWords{"child of fork()", "start a runtime in the child"};

void use_room(Room& room, const LoadedCase* loaded) {
  Runtime& runtime = room.runtime;
  refuses<UsageError>("allocate() in a child", kWords, [&] { runtime.allocate<int>(4); });
  refuses<UsageError>("upload() in a child", kWords, [&] { runtime.upload(std::vector<int>{1}); });
  refuses<UsageError>("stats() in a child", kWords, [&] { runtime.stats(); });
  refuses<UsageError>("workers() in a child", kWords, [&] { runtime.workers(); });
  Graph graph;
  graph.add(Leaf{graph.param<Call*>(nullptr)});
  refuses<UsageError>("load() in a child", kWords, [&] { runtime.load(graph); });
  refuses<UsageError>("load(compiled) in a child", kWords, [&] { runtime.load(graph, compiled); });
  refuses<UsageError>("describe() in a child", kWords, [&] { runtime.describe(graph); });
  if (loaded) {
    refuses<UsageError>("submit() in a child", kWords, [&] { runtime.submit(loaded->executable); });
    refuses<UsageError>("try_submit() in a child", kWords, [&] { runtime.try_submit(loaded->executable); });
    refuses<UsageError>("submit_after() in a child", kWords, [&] { runtime.submit_after(nullptr, loaded->executable); });
  }
  runtime.shutdown();
}

void use_run(Run& run) {
  refuses<UsageError>("wait() in a child", kWords, [&] { run.wait(); });
  refuses<UsageError>("wait_for() in a child", kWords, [&] { run.wait_for(std::chrono::seconds(1)); });
  refuses<UsageError>("status() in a child", kWords, [&] { run.status(); });
  refuses<UsageError>("cancel() in a child", kWords, [&] { run.cancel(); });
  refuses<UsageError>("next() in a child", kWords, [&] { run.next<int>(); });
  refuses<UsageError>("get() in a child", kWords, [&] { run.get(TaskRef<int>{}); });
  refuses<UsageError>("trace() in a child", kWords, [&] { run.trace(); });
  refuses<UsageError>("on_done() in a child", kWords, [&] { run.on_done([](Run&) {}); });
  refuses<UsageError>("when_any() in a child", kWords, [&] { when_any(run); });
  refuses<UsageError>("when_all() in a child", kWords, [&] { when_all(run); });
  refuses<UsageError>("let_stream_wait() in a child", kWords, [&] { run.let_stream_wait(nullptr); });
}

void use_queue(CompletionQueue& queue) {
  refuses<UsageError>("next_finished() in a child", kWords, [&] { queue.next_finished(); });
  refuses<UsageError>("try_next_finished() in a child", kWords, [&] { queue.try_next_finished(); });
  refuses<UsageError>("next_finished_for() in a child", kWords, [&] { queue.next_finished_for(std::chrono::seconds(1)); });
  refuses<UsageError>("size() in a child", kWords, [&] { queue.size(); });
}

void use_buffer(BufferCase& one) {
  if (!one.buffer.data()) return;
  refuses<UsageError>("read() in a child", kWords, [&] { one.buffer.read(); });
  refuses<UsageError>("write() in a child", kWords, [&] { one.buffer.write(one.shadow); });
  Buffer<std::uint32_t> taken = std::move(one.buffer);
}

/// Its own runtime, of which its parent's have taken nothing. Not under a sanitizer: ThreadSanitizer starts no threads there,
/// and those that AddressSanitizer starts may meet its locked allocator.
void start_own() {
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  Options options;
  options.target = Target::cpu;
  options.workers = 2;
  options.heap_bytes = 4096;
  options.max_runs = 4;
  options.log_level = "trace";
  Runtime own(all_tasks(), options);
  Graph graph;
  const auto in = graph.param<std::uint64_t>(3);
  const auto ref = graph.add(Step{graph.param<Call*>(nullptr), in, 0, Special::none, 0});
  Call call;
  Run run = own.submit(own.load(graph), set(Param<Call*>{8, in.graph}, &call));
  if (run.get(ref) != 21) finding("a child's own runtime gives a wrong result");
#endif
}
/// The parent has waited for long.
void tell_place(int) {
  constexpr int kAfterSignal = 2;  // frames of the handler
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = kAfterSignal; i < std::min(count, kAfterSignal + 2); ++i) {
    Dl_info place{};
    if (dladdr(frames[i], &place) && std::strstr(place.dli_fname, "libasan")) _exit(kStuckInSanitizer);
  }
  backtrace_symbols_fd(frames, count, STDOUT_FILENO);
  if (kSilentInSanitizer) _exit(1);  // an answer is a finding
}
}  // namespace

bool in_child() { return is_child; }

void be_a_child(TaskSlot& stage, Picks picks, std::unique_lock<std::mutex> lock, Dice dice) {
  is_child = true;
  signal(SIGUSR2, tell_place);
  try {
    if (picks.room)
      use_room(*picks.room, picks.loaded && picks.loaded->fate == picks.room->fate ? picks.loaded.get() : nullptr);
    if (picks.run) use_run(picks.run->run);
    if (picks.queue) use_queue(picks.queue->queue);
    if (picks.buffer) use_buffer(*picks.buffer);
    if (dice.one_in(2)) start_own();
    if (lock) lock.unlock();
    const bool leaves_it_to_exit = dice.one_in(3);
    if (!leaves_it_to_exit) stage.clear();
    picks = {};
    if (leaves_it_to_exit || dice.one_in(2)) std::exit(0);
  } catch (const std::exception& error) {
    finding(std::string("a child of fork() meets an exception: ") + error.what());
  }
  _exit(0);
}

}  // namespace flywheel::abuse
