// expect: (could not convert|cannot convert|invalid conversion)
#include <flywheel/flywheel.hpp>

int main() {
  flywheel::Graph graph;
  const auto steps = graph.param<int>(1);
  flywheel::set(steps, "many");
}
