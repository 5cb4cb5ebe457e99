// Keeps the texts of exceptions that task bodies on CPU workers have thrown, until their runs are collected. The CPU
// engine switches it on; completion.cpp takes the texts.
#pragma once

#include <cstddef>
#include <string>

#include "../../runtime/records/device_state.hpp"

namespace flywheel::detail {

/// Switches the keeping of texts on, for this process.
void keep_what_bodies_throw();
/// The text for a task of the run in a slot; empty if there is none. Removes the texts of all tasks of that run.
std::string take_what_body_threw(const DeviceState& dev, std::uint32_t slot, std::uint32_t task);
/// Removes the texts of all runs of this device state, whose memory is about to be freed.
void forget_what_bodies_threw(const DeviceState& dev);
/// The number of texts that are kept now, for all runtimes together.
std::size_t count_what_bodies_threw();

}  // namespace flywheel::detail
