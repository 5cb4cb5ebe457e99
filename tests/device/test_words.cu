// Atomic views of words in global memory do on a GPU what they say, for many threads at once, in every order.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "catch.hpp"

using namespace flywheel;

namespace {

constexpr int kPartWords = 7;  // of a task's part

/// Each thread adds to word 0 and, by add(), word 1; sets a bit of words 2 and, by set(), 3; clears one of word 4, if it is
/// even of word 6, too; and puts a number of its own in the place of word 5's, which it counts in `swapped`.
template <class T>
struct Updates {
  T* words;
  T* swapped;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(256, [&](int i) {
      const T bit = T{1} << i % (8 * sizeof(T));
      for (const Order order : {Order::relaxed, Order::acquire, Order::release, Order::acq_rel}) {
        at(0).fetch_add(static_cast<T>(i), order);
        at(2).fetch_or(bit, order);
        at(4).fetch_and(static_cast<T>(~bit), order);
        AtomicRef<T, Scope::device>(*swapped).fetch_add(at(5).exchange(static_cast<T>(i), order), Order::relaxed);
      }
      const T before = at(6).fetch_and_if(i % 2 == 0, static_cast<T>(~bit), Order::relaxed);
      if (i % 2 && before) at(6).fetch_and(0, Order::relaxed);  // never so
      for (const Order order : {Order::relaxed, Order::release}) {
        at(1).add(static_cast<T>(i), order);
        at(3).set(bit, order);
      }
    });
  }
  FLYWHEEL_TASK AtomicRef<T, Scope::device> at(int i) const { return AtomicRef<T, Scope::device>(words[i]); }
};

template <class T>
void check(Runtime& runtime) {
  constexpr T kTasks = 300, kSum = 256 * 255 / 2;
  Buffer<T> words = runtime.upload(std::vector<T>{7, 7, 0, 0, static_cast<T>(~T{0}), 1000, static_cast<T>(~T{0}), 0});
  Graph graph;
  for (T i = 0; i < kTasks; ++i) graph.add(Updates<T>{words.data(), words.data() + kPartWords});
  runtime.submit(runtime.load(graph)).wait();
  const std::vector<T> now = words.read();
  CHECK(now[0] == 7 + 4 * kTasks * kSum);
  CHECK(now[1] == 7 + 2 * kTasks * kSum);
  CHECK(now[2] == static_cast<T>(~T{0}));
  CHECK(now[3] == static_cast<T>(~T{0}));
  CHECK(now[4] == 0);
  CHECK(now[5] < 256);
  CHECK(now[6] == static_cast<T>(~T{0} / 3 * 2));               // odd bits are left
  CHECK(now[5] + now[kPartWords] == 1000 + 4 * kTasks * kSum);  // what was put has come out, but for the last
}

}  // namespace

TEST_CASE("words of global memory: 4 and 8 bytes, every operation and order, by many threads") {
  Options options;
  options.target = Target::gpu;
  Runtime runtime = start<Updates<std::uint32_t>, Updates<std::uint64_t>>(options);
  check<std::uint32_t>(runtime);
  check<std::uint64_t>(runtime);
}
