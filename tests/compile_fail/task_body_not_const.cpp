// expect: a task type needs .template <class Block> FLYWHEEL_TASK auto operator\(\)\(Block& block\) const.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Count {
  int n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) {
    ++n;
  }
};

int main() { flywheel::start<Count>(); }
