// What a program chose, and the environment for it, looked at before anything is taken.
#pragma once

#include "options.hpp"

namespace flywheel {

/// Throws CapacityError for a value that can work on no engine, UsageError for an unknown word in FLYWHEEL_MODE. What depends
/// on the engine is found out by it, sizes that are rounded up by DeviceStateMemory.
void check_options(const Options& options);

/// What FLYWHEEL_MODE says; automatic where it is not set.
Mode mode_of_environment();

}  // namespace flywheel
