// expect: a task type with operand_bytes\(\) needs .template <class Block> FLYWHEEL_TASK void pack\(Block& block, unsigned char\* to\) const.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Packed {
  std::uint32_t operand_bytes() const { return 16; }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Packed>(); }
