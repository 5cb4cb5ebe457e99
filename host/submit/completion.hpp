// The host's end of completion: detects that a run is over, and collects what it left in its slot. Run::done() and
// ending use it.
#pragma once

#include "../../runtime/records/device_state.hpp"
#include "../engine/engine.hpp"
#include "run_record.hpp"

namespace flywheel::detail {

/// True once the completion word of this live run is written.
bool is_complete(const DeviceState& dev, const RunRecord& run);
/// True if a complete run has status 0: no task failed, and it was not cancelled.
bool ended_well(const DeviceState& dev, const RunRecord& run);

/// Moves streamed values from the run's slot to `run.streamed`, until `most_unread` are there, see
/// Options::stream_unread: tasks wait only once the program is that far behind. The caller holds run.mutex and has
/// found the run live.
void drain_stream(const DeviceState& dev, RunRecord& run, std::size_t most_unread);

/// Collects the results, the rest of the stream and the status of a complete run; then the run is done. False if it was
/// done already: another thread has collected it, or it has ended early. Any thread may call it.
bool collect(const DeviceState& dev, RunRecord& run);
/// Discards what a run that had ended early left in its slot, once it is complete, so that the slot's next run starts
/// clean.
void clear_slot(const DeviceState& dev, RunRecord& run);

/// What happened to work that ended with `code`, which is not 0, without the remedy. `task` names the task, `cause` tells more;
/// both may be empty.
std::string failure_text(std::uint32_t code, const std::string& task, const std::string& cause);
/// The cause of Status::predecessor_failed: the text of the predecessor that failed, or of the first one in a chain. The caller
/// holds the dispatcher's mutex.
std::string predecessor_failure(const RunRecord& run);

/// Copies a trace from the device, and clears the tracks. All runs of the work are complete, and no other traced run is in
/// flight.
Trace collect_trace(Engine& engine, const DeviceState& dev, const TracedWork& work);

}  // namespace flywheel::detail
