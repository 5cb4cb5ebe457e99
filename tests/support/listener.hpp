// What a listener of Catch2 derives from, whichever major version the system has. To be included in place of catch.hpp.
#pragma once

// Version 2 declares its listeners only when asked.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "catch.hpp"

namespace flywheel::testing {

#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

}  // namespace flywheel::testing
