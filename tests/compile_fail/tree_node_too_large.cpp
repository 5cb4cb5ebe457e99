// expect: a node of a tree has at most 64 bytes
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fine {
  using Grain = flywheel::Thread;
  char bytes[65];
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    return 1;
  }
};

int main() { flywheel::start<flywheel::TreeTask<Fine>>(); }
