// expect: a streamed value is at most 8 plain bytes
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Pair {
  double first, second;
};

struct Emit {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.emit(Pair{1, 2});
  }
};

int main() { flywheel::start<Emit>(); }
