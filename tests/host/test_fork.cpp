// What a child of fork() may do with its parent's handles: let go of them, and be told that it may do no more.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "host/base/log.hpp"
#include "host/futures/core.hpp"
#include "support/child.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr int kRight = 0, kWrong = 1, kHung = 2;

/// What a child of fork() returned, or kHung.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
  int status = 0;
  if (eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, std::chrono::seconds(5)))
    return WIFEXITED(status) ? WEXITSTATUS(status) : kWrong;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return kHung;
}

/// Its own exit: a child that threads were not copied to cannot run the checks of the test.
template <class Action>
bool is_refused(Action&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return std::string(error.what()).find("start a runtime in the child") != std::string::npos;
  }
  return false;
}

struct Parent {
  Parent() : runtime(small_runtime(on_cpu(1))) {
    Graph graph;
    const auto first = graph.add(Square{2});
    graph.add(Square{3}, after(first));
    executable = runtime.load(graph);
    run = runtime.submit(executable);
    run.wait();
  }
  Core& core() const { return *executable.loaded()->core; }

  Runtime runtime;
  Executable executable;
  Run run;
};

}  // namespace

TEST_CASE("a child of fork() frees neither a buffer nor an executable of its parent") {
  Parent parent;
  auto buffer = std::make_unique<Buffer<int>>(parent.runtime.allocate<int>(4));
  CHECK(in_child([&] {
          const void* const at = buffer->data();
          buffer.reset();
          return parent.core().heap.try_allocate(4 * sizeof(int)) == at ? kWrong : kRight;
        }) == kRight);
  CHECK(in_child([&] {
          Core& core = parent.core();
          const std::uint64_t units = core.loader.used_units();
          parent.run = {};
          parent.executable = {};
          return core.loader.used_units() == units ? kRight : kWrong;
        }) == kRight);
}

TEST_CASE("a child of fork() lets go of its parent's handles also while another thread is at the heap") {
  Parent parent;
  auto buffer = std::make_unique<Buffer<int>>(parent.runtime.allocate<int>(4));
  std::atomic<bool> end{false};
  std::thread other([&] {
    while (!end.load(std::memory_order_relaxed)) parent.runtime.allocate<char>(256);
  });
  int right = 0;
  for (int round = 0; round < 40 && right == round; ++round)
    right += in_child([&] {
               buffer.reset();
               return kRight;
             }) == kRight;
  end.store(true, std::memory_order_relaxed);
  other.join();
  CHECK(right == 40);
}

TEST_CASE("a child of fork() that uses its parent's runtime is told to start its own") {
  Parent parent;
  Buffer<int> buffer = parent.runtime.allocate<int>(4);
  CHECK(in_child([&] { return is_refused([&] { parent.runtime.submit(parent.executable); }) ? kRight : kWrong; }) == kRight);
  CHECK(in_child([&] { return is_refused([&] { parent.runtime.allocate<int>(1); }) ? kRight : kWrong; }) == kRight);
  CHECK(in_child([&] { return is_refused([&] { parent.runtime.stats(); }) ? kRight : kWrong; }) == kRight);
  CHECK(in_child([&] { return is_refused([&] { buffer.read(); }) ? kRight : kWrong; }) == kRight);
  CHECK(in_child([&] { return is_refused([&] { parent.run.wait(); }) ? kRight : kWrong; }) == kRight);
  CHECK(in_child([&] { return is_refused([&] { parent.run.cancel(); }) ? kRight : kWrong; }) == kRight);
  parent.runtime.submit(parent.executable).wait();  // the parent goes on
}

TEST_CASE("a child of fork() may drop its parent's queue, and is told so if it uses it") {
  Parent parent;
  auto queue = std::make_unique<CompletionQueue>();
  std::atomic<bool> end{false};
  std::thread other([&] {
    while (!end.load(std::memory_order_relaxed)) {
      parent.runtime.submit(parent.executable, notify(*queue)).on_done([](Run&) {});
      queue->next_finished();
    }
  });
  int right = 0;
  for (int round = 0; round < 20 && right == round; ++round)
    right += in_child([&] {
               const bool refused = is_refused([&] { queue->next_finished(); }) && is_refused([&] { queue->size(); }) &&
                                    is_refused([&] { parent.run.on_done([](Run&) {}); });
               queue.reset();
               return refused ? kRight : kWrong;
             }) == kRight;
  end.store(true, std::memory_order_relaxed);
  other.join();
  CHECK(right == 20);
  CHECK(queue->size() == 0);
}

TEST_CASE("a child of fork() may start a runtime of its own") {
#ifdef __SANITIZE_THREAD__
  return;  // ThreadSanitizer starts no threads there
#endif
  Parent parent;
  CHECK(in_child([&] {
          Parent own;
          own.runtime.submit(own.executable).wait();
          return is_refused([&] { parent.runtime.submit(parent.executable); }) ? kRight : kWrong;
        }) == kRight);
}

TEST_CASE("a child of fork() may log, whatever its parent was logging") {
  std::atomic<bool> end{false};
  log::set_level("info");
  std::thread other([&] {
    while (!end.load(std::memory_order_relaxed)) log::info("the parent says so again and again");
  });
  int right = 0;
  for (int round = 0; round < 100 && right == round; ++round)
    right += in_child([] {
               log::info("the child says so");
               return kRight;
             }) == kRight;
  end.store(true, std::memory_order_relaxed);
  other.join();
  log::set_level("warn");
  CHECK(right == 100);
}
