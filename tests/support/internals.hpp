// For tests of the library's internals: namespace flywheel::detail, seen as namespace flywheel. Tests of what programs use
// do not include it, so they fail to compile when a public name moves there.
#pragma once

namespace flywheel {
namespace detail {}
using namespace detail;
}  // namespace flywheel
