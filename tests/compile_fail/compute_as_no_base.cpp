// expect: ComputeAs names a task's first base, which has its compute part
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Other {
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block&, Operands&) const {}
};

struct Sum {
  using ComputeAs = Other;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Sum>(); }
