// expect: f takes one value of each array in reads\(\), in their order: for reads\(x, y\) write
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Add {
  const float *x, *y;
  float* sum;
  int n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.stream(n, flywheel::reads(x, y), flywheel::writes(sum), [=](int i) { return x[i] + y[i]; });
  }
};

int main() { flywheel::start<Add>(); }
