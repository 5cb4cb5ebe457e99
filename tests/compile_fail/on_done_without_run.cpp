// expect: on_done\(\) calls the function with the run
#include <flywheel/flywheel.hpp>

void watch(flywheel::Run run) {
  run.on_done([] {});
}
