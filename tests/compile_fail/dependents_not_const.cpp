// expect: dependents\(\) of a task type must be const
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fetched {
  const float* in;
  std::uint32_t dependent_pages() const { return 1; }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) {
    fetch(in, 16);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Fetched>(); }
