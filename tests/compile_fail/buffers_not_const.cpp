// expect: buffers\(\) of a task type must be const: load\(\) would check none of them
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fill {
  float* out;
  template <class F>
  void buffers(F&& f) {
    f("out", out);
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add(Fill{nullptr});
}
