// For compute-sanitizer:
//   compute-sanitizer --tool memcheck  tests/test_device_sanitize
//   compute-sanitizer --tool synccheck tests/test_device_sanitize
#include "support/drained_work.hpp"
