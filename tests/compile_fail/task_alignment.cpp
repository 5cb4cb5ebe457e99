// expect: a task type must not ask for more than 16-byte alignment
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct alignas(32) Wide {
  float lanes[8];
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add(Wide{});
}
