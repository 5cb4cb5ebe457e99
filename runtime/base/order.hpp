// What an access to a shared word orders, and for whom.
#pragma once

namespace flywheel {

enum class Order { relaxed, acquire, release, acq_rel };

/// Who takes part in the synchronisation: the threads of a block, of a GPU, or of GPU and host together.
enum class Scope { block, device, system };

}  // namespace flywheel
