// What emulated blocks of a GPU tell the simulator. Each is a thread of the program, whose own threads are fibers of it.
#pragma once

#include <cstddef>

namespace flywheel::simulate {

/// Thread-local memory that only blocks use: other threads neither save nor find anything there. Before the first run.
void keep_for_blocks(void* at, std::size_t bytes);

/// The running thread is a block of that device from here on, whose shared memory is so much of what was kept for blocks.
void block_owns(void* at, std::size_t bytes);
void block_begins(const void* device);
void block_ends();

/// While the sum of these is not 0, plain accesses of the running thread (of a block) are the emulator's own.
void ignore(int by);

/// Whether atomic accesses of the running thread go with those of any scope.
void copy_any_scope(bool yes);

}  // namespace flywheel::simulate
