/*    ,-> b -.
 *  a         >-> d
 *    `-> c -'       */
#include <cstdio>
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>
struct Add {  // out = left + right + 1
  const int *left, *right;
  int* out;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    if (block.leader()) *out = *left + *right + 1;
    block.sync();
    return *out;
  }
};
int main() {
  auto rt = flywheel::start<Add>();  // the GPU if there is one, CPU workers if not
  auto x = rt.allocate<int>(4);      // zeroed
  int *a = x.data(), *b = a + 1, *c = a + 2, *d = a + 3;
  flywheel::Graph g;
  auto ta = g.add(Add{a, a, a}), tb = g.add(Add{a, a, b}, after(ta)), tc = g.add(Add{a, a, c}, after(ta));
  auto td = g.add(Add{b, c, d}, after(tb, tc));
  std::printf("a diamond on %s: d = %d\n", rt.device().c_str(), rt.submit(rt.load(g)).get(td));
}
