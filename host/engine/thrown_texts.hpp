// What exceptions of CPU workers' bodies said, until their runs are collected.
#pragma once

#include <cstddef>
#include <string>

#include "../../runtime/records/device_state.hpp"

namespace flywheel {

/// From now on, for the runs' causes.
void keep_what_bodies_throw();
/// Of a task of the run in a slot, empty if nothing is kept of it. Forgets those of all tasks of that run.
std::string take_what_body_threw(const DeviceState& dev, std::uint32_t slot, std::uint32_t task);
/// Of the runs in this memory, which goes away.
void forget_what_bodies_threw(const DeviceState& dev);
/// Texts that are kept just now, of all runtimes.
std::size_t count_what_bodies_threw();

}  // namespace flywheel
