// expect: shuffle_xor\(\) needs a warp, and a CPU worker has one thread: combine values with block.reduce\(\), or call it
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Sum {
  const int* in;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    int sum = in[block.lane()];
    for (int apart = 16; apart; apart /= 2) sum += block.shuffle_xor(sum, apart);
    return sum;
  }
};

int main() { flywheel::start<Sum>(); }
