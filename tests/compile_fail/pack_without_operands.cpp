// expect: a task type with pack\(\) needs .std::uint32_t operand_bytes\(\) const.: without it nothing is packed
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Packed {
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) const {}
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

int main() { flywheel::start<Packed>(); }
