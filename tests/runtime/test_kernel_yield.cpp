// The GPU's kernel on an emulated GPU: it is suspended again and again, and its work goes on.
#include "support/emulated_bench.hpp"
#include "support/yields.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE_METHOD(EmulatedBench, "kernel, yields: spawned tasks, parameters and streams survive") {
  check_yields_of_spawns(*this, 8, false);
}

TEST_CASE_METHOD(EmulatedBench, "kernel, yields: roots and sinks of repeated runs survive") {
  check_yields_of_roots(*this, 30, 3);
}

TEST_CASE_METHOD(EmulatedBench, "kernel, yields: a compiled run goes on at its pass") {
  check_yields_of_compiled(*this, 150, 3);
}

TEST_CASE_METHOD(EmulatedBench, "kernel, yields: a phased run goes on at its phase") { check_yields_of_phases(*this, 60, 3); }

TEST_CASE_METHOD(EmulatedBench, "kernel, yields: runs are cancelled whether the kernel is there or not") {
  check_cancels_beside_yields(*this, 3);
}
