// expect: cost_ns\(\) of a task type must be const: it would not count
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fill {
  double cost_ns() { return 1000; }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add(Fill{});
}
