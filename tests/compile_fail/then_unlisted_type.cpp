// expect: this task type is not in the list given to flywheel::start<...>\(\): add it there
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Leaf {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

struct Tree {
  template <class Block>
  FLYWHEEL_TASK bool operator()(Block& block) const {
    return block.then(Leaf{});
  }
};

int main() { flywheel::start<Tree>(); }
