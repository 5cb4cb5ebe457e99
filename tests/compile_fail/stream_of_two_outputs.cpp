// expect: with more than one array in writes\(\), f returns a struct with one member for each, in their order
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Halve {
  float *x, *halves, *rests;
  int n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.stream(n, flywheel::reads(x), flywheel::writes(halves, rests), [](float value) { return value / 2; });
  }
};

int main() { flywheel::start<Halve>(); }
