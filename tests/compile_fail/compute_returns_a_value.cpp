// expect: a task with a compute part returns nothing: write to a buffer
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Sum {
  template <class Block>
  FLYWHEEL_TASK float operator()(Block&) const {
    return 0;
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block&, Operands&) const {}
};

int main() { flywheel::start<Sum>(); }
