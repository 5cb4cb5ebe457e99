// expect: a run parameter must be trivially copyable
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

int main() {
  flywheel::Graph graph;
  graph.param<std::string>("name");
}
