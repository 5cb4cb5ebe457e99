// expect: threads of a block exchange trivially copyable values: pass the plain members, or an index into scratch memory
#include <string>

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

struct Joined {
  int first;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto join = [](const std::string& a, const std::string& b) { return a + b; };
    if (block.exclusive_scan(std::to_string(first), join, "").empty()) block.fail(1);
  }
};

int main() { flywheel::start<Joined>(); }
