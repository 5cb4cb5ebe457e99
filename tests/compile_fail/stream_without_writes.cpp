// expect: f returns a value, and no array takes it: put writes\(array\) between reads\(\) and f, or return nothing
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Double {
  float* x;
  int n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.stream(n, flywheel::reads(x), [](float value) { return 2 * value; });
  }
};

int main() { flywheel::start<Double>(); }
