// A loop over constants: its variable is a constant in each pass. An array that such a loop goes through can stay in
// registers on a GPU. The inbox uses it.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "platform.hpp"

namespace flywheel::detail {

template <class F, std::uint32_t... kAt>
FLYWHEEL_TASK constexpr void for_constants(F&& f, std::integer_sequence<std::uint32_t, kAt...>) {
  (f(std::integral_constant<std::uint32_t, kAt>{}), ...);
}
/// Calls f(0), f(1), ... f(kCount - 1).
template <std::uint32_t kCount, class F>
FLYWHEEL_TASK constexpr void for_constants(F&& f) {
  for_constants(f, std::make_integer_sequence<std::uint32_t, kCount>{});
}

}  // namespace flywheel::detail
