// expect: store\(\) ends what compute\(\) began, and is not called without: add a compute part or change the name
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Sum {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block&) const {}
};

int main() { flywheel::start<Sum>(); }
