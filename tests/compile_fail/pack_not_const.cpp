// expect: pack\(\) of a task type must be const
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Packed {
  std::uint32_t packed;
  std::uint32_t operand_bytes() const { return 16; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) {
    ++packed;
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Packed>(); }
