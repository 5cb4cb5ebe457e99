// The host's end of completion: seeing that a run is over, and taking what it left in its slot.
#pragma once

#include "host/engine.hpp"
#include "host/run_record.hpp"
#include "runtime/world.hpp"

namespace flywheel {

/// CPU workers: what exceptions of task bodies say is kept from now on, for the runs' causes.
void keep_what_bodies_throw();
/// Of the runs in this memory, which goes away.
void forget_what_bodies_threw(const World& world);
/// Texts that are kept just now, of all runtimes.
std::size_t count_what_bodies_threw();

/// True once the device has written this live run's completion word.
bool is_complete(const World& world, const RunRecord& run);

/// Takes streamed values that have arrived out of the run's slot, so that the device does not wait for the program
/// before Options::stream_unread values are unread. The caller holds run.mutex.
void drain_stream(const World& world, RunRecord& run);

/// Copies results, rest of the stream and status out of the slot; afterwards the slot may be reused. Returns the
/// stream ticket the slot's next run starts with. `told`: the program knows already how the run ended (it had
/// stalled), and may be reading that: only the slot is seen to.
std::uint64_t collect(const World& world, RunRecord& run, bool told);

/// What the workers of a traced run wrote down. The run is complete, and no later one of all workers was let in.
Trace collect_trace(Engine& engine, const World& world, const RunRecord& run);

}  // namespace flywheel
