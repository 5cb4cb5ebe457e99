// Which functions are entered while one task goes from submit() to get(). Called by the code that -finstrument-functions adds.
#pragma once

#include <cstddef>

namespace flywheel::journey {

/// Parts of the journey that one thread does, in their order.
enum class Part { submit, poller, worker, get };
inline constexpr std::size_t kParts = 4;

/// From here on, what a thread enters is what it does while it waits for work.
void watch_idle();
/// From here on, functions that no idle thread enters are of the journey, and with them those that are on the thread's stack.
/// Each goes to the part that its thread has taken; of a thread without one nothing is recorded.
void begin();
void end();
/// The calling thread does this part from now on.
void take(Part part);
/// A thread that enters this function does this part from then on. Call it before there is such a thread.
void begins(Part part, const void* function);

/// What was entered, each function once in a part and in the order of the first time.
struct Entries {
  const void* const* functions;
  std::size_t count;
};
Entries entries(Part part);

}  // namespace flywheel::journey
