// The places at which lanes of an emulated block wait for each other, and their names in messages.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace flywheel::testing {

/// What all lanes of a warp must come to together. Two are the same if both members are.
struct Collective {
  const char* name = "nothing";
  std::size_t bytes = 0;  // of the values exchanged

  bool operator==(const Collective& other) const {
    return (name == other.name || !std::strcmp(name, other.name)) && bytes == other.bytes;
  }
  std::string text() const { return bytes ? name + (" of " + std::to_string(bytes) + " bytes") : std::string(name); }
};
inline constexpr Collective kSyncAll{"sync()"};
inline constexpr Collective kCountAll{"count()"};
inline constexpr Collective kReturned{"the end of its part"};

/// "lanes 0-3, 7".
inline std::string lanes_text(std::uint32_t mask) {
  std::string text = std::has_single_bit(mask) ? "lane " : "lanes ";
  for (const char* between = ""; mask; between = ", ") {
    const int first = std::countr_zero(mask), count = std::countr_one(mask >> first);
    text += between + std::to_string(first);
    if (count > 1) text += "-" + std::to_string(first + count - 1);
    mask = first + count == 32 ? 0 : mask >> (first + count) << (first + count);
  }
  return text;
}

}  // namespace flywheel::testing
