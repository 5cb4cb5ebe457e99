// Proof that the dispatcher's mutex is held.
#pragma once

#include <mutex>

namespace flywheel {

/// A function that takes a `const Lock&` is called with the dispatcher's mutex held. One that takes a `Lock&` may let go of it
/// for a while.
using Lock = std::unique_lock<std::mutex>;

}  // namespace flywheel
