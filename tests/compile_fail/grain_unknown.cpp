// expect: the Grain of a task type is flywheel::Warp, or is left out
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fine {
  using Grain = int;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Fine>(); }
