// expect: a task type must fit kTaskArgBytes \(96\): keep larger data in a device buffer and pass a pointer
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Matrix {
  float cells[25];
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add(Matrix{});
}
