// expect: a task type must be trivially copyable: it is sent to the GPU as bytes
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Named {
  std::string name;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Named>(); }
