// expect: notify\(\) takes the flywheel::CompletionQueue that the run goes to
#include <flywheel/flywheel.hpp>

void submit(flywheel::Runtime& rt, const flywheel::Executable& executable) { rt.submit(executable, flywheel::notify(rt, 7)); }
