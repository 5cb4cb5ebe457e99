// Functions of the emulator that ThreadSanitizer does not look at: what it does at each turn of a thread. Looking, and ignoring
// what was seen since it was the emulator's own (see Unwatched), took a third of an emulated kernel's time.
//
// GCC inlines nothing there that is looked at, unless it must: so no std::array, and small ones inline by force.
#pragma once

#define FLYWHEEL_UNWATCHED __attribute__((no_sanitize("thread")))
#define FLYWHEEL_UNWATCHED_INLINE __attribute__((no_sanitize("thread"), always_inline)) inline
