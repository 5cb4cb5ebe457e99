// expect: a compute part, operands and an early begin are for compiled graphs: leave out `kCompiled = false`, or those
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Early {
  static constexpr bool kCompiled = false;
  static constexpr bool kEarly = true;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Early>(); }
