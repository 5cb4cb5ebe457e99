// Memory orders and scopes of accesses to shared words. AtomicRef (platform.hpp) takes them.
#pragma once

namespace flywheel {

/// As in std::memory_order. runtime/ and device/ use no sequentially consistent accesses.
enum class Order { relaxed, acquire, release, acq_rel };

/// The threads that synchronize: those of one block, of one GPU, or of GPU and host together.
enum class Scope { block, device, system };

}  // namespace flywheel
