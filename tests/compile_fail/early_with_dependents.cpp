// expect: an early task has no dependent operands: those are fetched when the tasks before it are done
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Early {
  static constexpr bool kEarly = true;
  const float* in;
  std::uint32_t dependent_pages() const { return 1; }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    fetch(in, 16);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Early>(); }
