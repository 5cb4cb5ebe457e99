// expect: a compute part takes its operands, too: .template <class Block, class Operands> FLYWHEEL_TASK void compute\(Block& block, Operands& operands\) const.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Sum {
  std::uint32_t operand_bytes() const { return 16; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) const {}
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block&) const {}
};

int main() { flywheel::start<Sum>(); }
