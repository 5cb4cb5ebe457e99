// expect: resume_on\(\) calls the executor with the coroutine
#include <flywheel/flywheel.hpp>

void await(flywheel::Run run) {
  flywheel::resume_on([](int) {}, run);
}
