// The host's end of completion: seeing that a run is over, and taking what it left in its slot.
#pragma once

#include "../engine/engine.hpp"
#include "run_record.hpp"
#include "../../runtime/records/device_state.hpp"

namespace flywheel {

/// True once the device has written this live run's completion word.
bool is_complete(const DeviceState& dev, const RunRecord& run);
/// Of a complete run: no task of it failed, and nobody cancelled it.
bool ended_well(const DeviceState& dev, const RunRecord& run);

/// Takes streamed values that have arrived out of the run's slot, so that the device does not wait for the program before
/// `most_unread` values are unread, see Options::stream_unread. The caller holds run.mutex and has found the run live.
void drain_stream(const DeviceState& dev, RunRecord& run, std::size_t most_unread);

/// Takes results, the rest of the stream and the status of a complete run out of its slot; then the run is done. False if it
/// was done already: another thread has collected it, or it has ended early. Any thread.
bool collect(const DeviceState& dev, RunRecord& run);
/// A complete run that had ended early: takes what it left in its slot all the same, so that the slot's next run begins clean.
void clear_slot(const DeviceState& dev, RunRecord& run);

/// What the workers of a traced run wrote down. The run is complete, and no later one of all workers is in flight.
Trace collect_trace(Engine& engine, const DeviceState& dev, const RunRecord& run);

}  // namespace flywheel
