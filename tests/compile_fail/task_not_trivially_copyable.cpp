// expect: a task type must be trivially copyable: it is sent to the GPU as bytes
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Names {
  std::vector<int> names;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add(Names{});
}
