// expect: a task type must be trivially copyable and fit kTaskArgBytes; keep larger data behind a pointer
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Leaf {
  float cells[25];
};

struct Tree {
  template <class Block>
  FLYWHEEL_TASK bool operator()(Block& block) const {
    return block.spawn(Leaf{});
  }
};

int main() { flywheel::start<Tree>(); }
