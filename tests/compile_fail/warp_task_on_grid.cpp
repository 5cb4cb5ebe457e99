// expect: a grid task runs on all warps of each worker: leave out `Grain`
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Fine {
  using Grain = flywheel::Warp;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() {
  flywheel::Graph graph;
  graph.add_grid(Fine{});
}
