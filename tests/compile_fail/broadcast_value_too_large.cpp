// expect: threads of a block exchange values of up to 16 bytes: pass the members one after the other, or an index into
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Row {
  float at[5];
};

struct Spread {
  Row row;
  template <class Block>
  FLYWHEEL_TASK float operator()(Block& block) const {
    return block.broadcast(row, 0).at[4];
  }
};

int main() { flywheel::start<Spread>(); }
