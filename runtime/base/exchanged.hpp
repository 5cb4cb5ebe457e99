// What the values must be that the threads of a block pass to each other. The blocks of GPUs (device/) and the one thread of
// a CPU worker (runtime/records/one_thread.hpp) check it, so that a body that compiles for one compiles for the other.
#pragma once

#include <cstddef>
#include <type_traits>

#include "platform.hpp"

namespace flywheel::detail {

inline constexpr std::size_t kMostExchanged = 16;

template <class T>
FLYWHEEL_TASK constexpr void check_exchanged() {
  static_assert(
      std::is_trivially_copyable_v<T>,
      "threads of a block exchange trivially copyable values: pass the plain members, or an index into scratch memory");
  static_assert(sizeof(T) <= kMostExchanged,
                "threads of a block exchange values of up to 16 bytes: pass the members one after the other, or an index into "
                "scratch memory");
}

}  // namespace flywheel::detail
