// What a process does around the library: fork(), signals, threads that come and go.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "abuse/child.hpp"
#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
std::atomic<std::uint64_t> signals{0};

void count_signal(int) { signals.fetch_add(1, std::memory_order_relaxed); }

/// Things that go when their thread does.
struct Leftovers {
  std::shared_ptr<LoadedCase> loaded;
  std::shared_ptr<RunCase> run;
  std::shared_ptr<BufferCase> buffer;
  std::shared_ptr<Room> room;
  Actor* actor = nullptr;  // in whose name a last run is submitted; null: none is

  ~Leftovers() {
    if (in_child()) return;
    if (actor && loaded) run = submit_one(*actor, loaded);
    if (run) run->run.wait_for(std::chrono::microseconds(100));
  }
};
thread_local Leftovers leftovers;

Actor guest_of(Actor& actor) {
  return {actor.stage, actor.settings, actor.journal, Dice(actor.dice.next()), actor.number, actor.depth + 1};
}

void wait_for_child(pid_t child) {
  constexpr std::int64_t kAskNs = kSilentInSanitizer ? 15'000'000'000 : 4'000'000'000;
  constexpr std::int64_t kLongestNs = kSilentInSanitizer ? 20'000'000'000 : 50'000'000'000;
  const std::int64_t begin = now_ns();
  bool outcome = false;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const std::int64_t passed = now_ns() - begin;
    if (passed > kAskNs && !std::exchange(outcome, true)) kill(child, SIGUSR2);
    if (passed > kLongestNs) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      if (kSilentInSanitizer) return count("children stuck in the sanitizer");
      finding("a child of fork() does not end");
    }
    usleep(500);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kStuckInSanitizer) return count("children stuck in the sanitizer");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) finding("a child of fork() ends with status " + std::to_string(status));
}
}  // namespace

void fork_child(Actor& actor) {
  if (!actor.settings.forks) return;
  Dice dice(actor.dice.next());
  Picks picks{actor.stage.rooms.get(dice.below(kRooms)), actor.stage.buffers.get(dice.below(kBuffers)),
              actor.stage.loaded.get(dice.below(kLoaded)), actor.stage.runs.get(dice.below(kRuns)),
              actor.stage.queues.get(dice.below(kQueues))};
  std::unique_lock<std::mutex> buffer;
  if (picks.buffer) buffer = std::unique_lock(picks.buffer->mutex);
  actor.stage.lock_all();  // so that the child may use the places
  std::fflush(stdout);
  const pid_t child = fork();
  actor.stage.unlock_all();
  if (child < 0) return;
  if (child == 0) be_a_child(actor.stage, std::move(picks), std::move(buffer), dice);
  wait_for_child(child);
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = count_signal;  // and calls that were interrupted fail with EINTR
  sigaction(SIGUSR1, &action, nullptr);
}

void send_signal(Actor& actor) {
  if (actor.dice.one_in(3)) pthread_kill(pthread_self(), SIGUSR1);
  else kill(getpid(), SIGUSR1);  // to any thread
}

void be_a_thread(Actor& actor) {
  Actor guest = guest_of(actor);
  std::thread([&] {
    for (std::uint32_t i = guest.dice.between(1, 3); i; --i) act_within(guest);
  }).join();
}

void wait_together(Actor& actor) {
  const auto one = actor.stage.runs.get(actor.dice.below(kRuns));
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { finish(*one); });
  if (actor.dice.one_in(2)) {
    one->cancelled = true;
    one->run.cancel();
  }
  finish(*one);
  for (std::thread& thread : threads) thread.join();
}

void leave_to_thread_exit(Actor& actor) {
  Actor guest = guest_of(actor);
  Dice& dice = guest.dice;
  auto loaded = actor.stage.loaded.get(dice.below(kLoaded));
  auto run = actor.stage.runs.put(dice.below(kRuns), nullptr);
  auto buffer = actor.stage.buffers.put(dice.below(kBuffers), nullptr);
  auto room = dice.one_in(4) ? actor.stage.rooms.put(dice.below(kRooms), nullptr) : nullptr;
  const auto fate = room ? room->fate : loaded ? loaded->fate : nullptr;
  const WaitsOn waits(actor.journal, fate);
  std::thread([&] {
    leftovers.actor = dice.one_in(2) ? &guest : nullptr;
    leftovers.loaded = std::move(loaded);
    leftovers.run = std::move(run);
    leftovers.buffer = std::move(buffer);
    leftovers.room = std::move(room);
    if (dice.one_in(2)) act_within(guest);  // perhaps the library's first thread_local object comes after ours, and goes before
  }).join();
}

}  // namespace flywheel::abuse
