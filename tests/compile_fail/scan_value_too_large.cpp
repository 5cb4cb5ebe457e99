// expect: threads of a block exchange values of up to 16 bytes: pass the members one after the other, or an index into
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Moments {
  double count, sum, squares;
};

struct Running {
  Moments* out;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto add = [](Moments a, Moments b) { return Moments{a.count + b.count, a.sum + b.sum, a.squares + b.squares}; };
    out[block.rank()] = block.inclusive_scan(out[block.rank()], add);
  }
};

int main() { flywheel::start<Running>(); }
