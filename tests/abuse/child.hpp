// A child of fork(): what it does with its parent's things.
#pragma once

#include "abuse/stage.hpp"

namespace flywheel::abuse {

/// What the child looks at more closely.
struct Picks {
  std::shared_ptr<Room> room;
  std::shared_ptr<BufferCase> buffer;
  std::shared_ptr<LoadedCase> loaded;
  std::shared_ptr<RunCase> run;
  std::shared_ptr<QueueCase> queue;
};

/// Uses some, lets go of all, and ends the process. `lock` is that of the buffer.
[[noreturn]] void be_a_child(TaskSlot& stage, Picks picks, std::unique_lock<std::mutex> lock, Dice dice);
bool in_child();

/// A sanitizer's own locks may be held in a child by threads that are not there. On SIGUSR2 a child that AddressSanitizer holds
/// ends with this, and others tell where they are. ThreadSanitizer lets a signal wait until the child leaves it: where it holds
/// a child, there is no answer.
inline constexpr int kStuckInSanitizer = 77;
#ifdef __SANITIZE_THREAD__
inline constexpr bool kSilentInSanitizer = true;
#else
inline constexpr bool kSilentInSanitizer = false;
#endif

}  // namespace flywheel::abuse
