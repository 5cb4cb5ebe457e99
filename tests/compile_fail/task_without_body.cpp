// expect: a task type needs .template <class Block> FLYWHEEL_TASK auto operator\(\)\(Block& block\) const.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Idle {
  int n;
};

int main() { flywheel::start<Idle>(); }
