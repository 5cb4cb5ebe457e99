// expect: flywheel::start<...>\(\) needs at least one task type
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

int main() { flywheel::start<>(); }
