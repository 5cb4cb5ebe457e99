// The type of the lock on the dispatcher's mutex. The rooms kernel/ and submit/ pass it as a parameter to show that the
// mutex is held.
#pragma once

#include <mutex>

namespace flywheel::detail {

/// A function that takes a `const Lock&` must be called with the dispatcher's mutex held. A function that takes a
/// `Lock&` may release the mutex for a while and acquires it again.
using Lock = std::unique_lock<std::mutex>;

}  // namespace flywheel::detail
