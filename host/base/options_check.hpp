// Checks the options of a runtime and the FLYWHEEL_MODE environment variable, before the runtime allocates anything.
// Included by Runtime and by the GPU engine.
#pragma once

#include "options.hpp"

namespace flywheel::detail {

/// Throws CapacityError for a value that no engine can use, and UsageError for an unknown FLYWHEEL_MODE. The engines
/// check what depends on the device; DeviceStateMemory checks sizes that it rounds up.
void check_options(const Options& options);

/// What CPU workers give and every GPU would refuse, as a warning; empty if there is nothing.
std::string scratch_of_no_gpu(const Options& options);

/// The mode that FLYWHEEL_MODE names, Mode::automatic if it is not set. Throws UsageError for an unknown word.
Mode mode_of_environment();

}  // namespace flywheel::detail
