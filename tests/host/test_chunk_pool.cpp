#include "host/tasks/chunk_pool.hpp"
#include "support/internals.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "catch.hpp"

using namespace flywheel;

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
