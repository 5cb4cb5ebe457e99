// expect: this queue is gone before the run ends
#include <flywheel/flywheel.hpp>

void submit(flywheel::Runtime& rt, const flywheel::Executable& executable) {
  rt.submit(executable, flywheel::notify(flywheel::CompletionQueue()));
}
