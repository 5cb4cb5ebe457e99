#include "host/tasks/chunk_pool.hpp"
#include "support/internals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace flywheel;

namespace {
/// Whether a child of fork() can take chunks. One that waits for a lock ends by its alarm.
bool child_takes_chunks() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    for (int i = 0; i < 3; ++i) give_back_chunk(take_chunk());
    _exit(7);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}
}  // namespace

TEST_CASE("a chunk that was given back is the next one that is taken, and no two are the same") {
  void* const one = take_chunk();
  void* const two = take_chunk();
  CHECK(one != two);
  CHECK(reinterpret_cast<std::uintptr_t>(one) % 128 == 0);
  std::memset(one, 1, kChunkBytes);
  const std::size_t kept = kept_chunks();
  give_back_chunk(one);
  CHECK(kept_chunks() == kept + 1);
  CHECK(take_chunk() == one);
  CHECK(kept_chunks() == kept);
  give_back_chunk(one);
  give_back_chunk(two);
}

TEST_CASE("the pool keeps 64 MiB at most") {
  std::vector<void*> chunks;
  for (int i = 0; i < 1100; ++i) chunks.push_back(take_chunk());
  for (void* chunk : chunks) give_back_chunk(chunk);
  CHECK(kept_chunks() == 1024);
}

TEST_CASE("a child of fork() takes chunks also while another thread of its parent is at the pool") {
  std::atomic<bool> end{false};
  std::thread other([&] {
    while (!end.load(std::memory_order_relaxed)) give_back_chunk(take_chunk());
  });
  int right = 0;
  for (int i = 0; i < 50; ++i) right += child_takes_chunks();
  end = true;
  other.join();
  CHECK(right == 50);
}
