#include "host/api/buffer.hpp"
#include "support/internals.hpp"

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("buffers are zeroed, written, read and moved") {
  Runtime runtime = small_runtime(on_cpu());
  Buffer<std::uint32_t> buffer = runtime.allocate<std::uint32_t>(1000);
  CHECK(buffer.read() == std::vector<std::uint32_t>(1000, 0));
  const std::vector<std::uint32_t> part{7, 8, 9};
  buffer.write(part.data(), 3, 997);
  std::uint32_t got[2] = {};
  buffer.read(got, 2, 998);
  CHECK(got[0] == 8);
  CHECK(got[1] == 9);
  std::uint32_t* const data = buffer.data();
  Buffer<std::uint32_t> moved = std::move(buffer);
  CHECK(moved.data() == data);
  CHECK(moved.read()[999] == 9);
  CHECK(runtime.upload(part).read() == part);
  CHECK(runtime.upload(std::vector<std::uint32_t>{}).read().empty());
}

TEST_CASE("a buffer that was moved from is empty, and an assignment gives back what was there") {
  Options options = on_cpu();
  options.heap_bytes = 4096;
  Runtime runtime = small_runtime(options);
  Buffer<std::uint32_t> small = runtime.allocate<std::uint32_t>(64), large = runtime.allocate<std::uint32_t>(512);
  const void* const first = small.data();
  small = std::move(large);
  CHECK(small.size() == 512);
  CHECK(small.read().size() == 512);
  CHECK(large.size() == 0);
  CHECK(large.data() == nullptr);
  check_says(error_of<UsageError>([&] { large.read(); }), {"empty buffer", "Runtime::allocate()"});
  CHECK(runtime.allocate<std::uint32_t>(64).data() == first);
  Buffer<std::uint32_t>& same = small;
  small = std::move(same);
  CHECK(small.size() == 512);
}

TEST_CASE("memory given back is zeroed again for the next owner") {
  Options options = on_cpu();
  options.heap_bytes = 4096;
  Runtime runtime = small_runtime(options);
  const void* first = nullptr;
  {
    Buffer<std::uint64_t> buffer = runtime.upload(std::vector<std::uint64_t>(256, ~0ull));
    first = buffer.data();
  }
  Buffer<std::uint64_t> again = runtime.allocate<std::uint64_t>(256);
  CHECK(again.data() == first);
  CHECK(again.read() == std::vector<std::uint64_t>(256, 0));
}

TEST_CASE("copies outside a buffer are refused, and say which bytes") {
  Runtime runtime = small_runtime(on_cpu());
  Buffer<std::uint32_t> buffer = runtime.allocate<std::uint32_t>(10);
  std::uint32_t words[20] = {};
  check_says(error_of<UsageError>([&] { buffer.write(words, 11); }), {"0 to 44", "that has 40"});
  check_says(error_of<UsageError>([&] { buffer.read(words, 1, 10); }), {"40 to 44", "that has 40"});
  check_says(error_of<UsageError>([&] { buffer.read(words, 1, ~std::size_t{0} / 4); }), {"check position and count"});
  check_says(error_of<UsageError>([&] { buffer.write(nullptr, 1); }), {"null host pointer"});
  buffer.write(nullptr, 0);
  buffer.read(nullptr, 0, 3);  // where it is not copied word by word
  Buffer<std::uint32_t> empty;
  check_says(error_of<UsageError>([&] { empty.write(words, 1); }), {"empty buffer", "Runtime::allocate()"});
  CHECK(empty.data() == nullptr);
}
