// expect: a parameter that another run computes has at most 8 bytes
#include <flywheel/flywheel.hpp>

struct Large {
  double values[3];
};

int main() {
  flywheel::Graph graph;
  const auto param = graph.param<Large>();
  flywheel::set(param, flywheel::Future<Large>());
}
