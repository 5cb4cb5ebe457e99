// expect: a node of a tree says who runs it
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fine {
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    return 1;
  }
};

int main() { flywheel::start<flywheel::TreeTask<Fine>>(); }
