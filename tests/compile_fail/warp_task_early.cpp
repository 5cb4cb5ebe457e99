// expect: a warp task has no compute part, no operands and no early begin: leave out `Grain`, or those
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Early {
  using Grain = flywheel::Warp;
  static constexpr bool kEarly = true;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Early>(); }
