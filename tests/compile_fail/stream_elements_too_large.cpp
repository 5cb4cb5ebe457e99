// expect: the elements of streamed arrays are trivially copyable and have 1, 2, 4, 8 or 16 bytes
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Point {
  float x, y, z;
};

struct Largest {
  const Point* points;
  int n;
  template <class Block>
  FLYWHEEL_TASK float operator()(Block& block) const {
    const auto most = [](float a, float b) { return a < b ? b : a; };
    return block.stream_reduce(n, flywheel::reads(points), 0.0f, most, [](Point p) { return p.x; });
  }
};

int main() { flywheel::start<Largest>(); }
