// expect: a task type with dependents\(\) needs .std::uint32_t dependent_pages\(\) const.: without it nothing is fetched
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fetched {
  const float* in;
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    fetch(in, 16);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Fetched>(); }
