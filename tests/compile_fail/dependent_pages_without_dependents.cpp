// expect: a task type with dependent_pages\(\) needs .template <class Fetch> FLYWHEEL_TASK void dependents\(Fetch&& fetch\) const.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fetched {
  std::uint32_t dependent_pages() const { return 1; }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Fetched>(); }
