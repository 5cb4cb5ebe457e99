// expect: store\(\) of a task type must be const: it would not be called
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Sum {
  float sum;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block&, Operands&) const {}
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block&) { sum = 0; }
};

int main() { flywheel::start<Sum>(); }
