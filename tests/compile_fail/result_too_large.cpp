// expect: a task may return a plain value of up to 64 bytes; write larger results to a buffer
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Row {
  double cells[9];
};

struct MakeRow {
  template <class Block>
  FLYWHEEL_TASK Row operator()(Block&) const {
    return {};
  }
};

int main() {
  flywheel::Graph graph;
  graph.add(MakeRow{});
}
