// expect: a streamed value is at most 8 plain bytes
#include <flywheel/flywheel.hpp>

struct Pair {
  double first, second;
};

int main() {
  flywheel::Run run;
  run.next<Pair>();
}
