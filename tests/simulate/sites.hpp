// The places in the program's code that access memory atomically.
#pragma once

#include "simulate/memory.hpp"

namespace flywheel::simulate {

/// A place that orders something or is of an emulated block, and how often it was passed. Shared with the parent.
struct Site {
  std::uintptr_t place;
  int order, scope;
  std::uint64_t passed;
};
inline constexpr std::size_t kMostSites = 4096;
/// From here on they are noted in `sites`, which has kMostSites.
void note_sites(Site* sites);
void print_sites(const Site* sites);

/// What the access does: what it asks for, unless Settings weakens or narrows its place.
How done_so(How outcome);

}  // namespace flywheel::simulate
