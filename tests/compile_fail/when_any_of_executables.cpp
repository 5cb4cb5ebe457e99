// expect: when_any\(\) and when_all\(\) take runs, or one range of runs
#include <flywheel/flywheel.hpp>

void wait(const flywheel::Executable& one, const flywheel::Executable& other) { flywheel::when_any(one, other); }
