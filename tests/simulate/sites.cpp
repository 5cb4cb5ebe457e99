#include "simulate/sites.hpp"

#include <algorithm>
#include <cstdio>

#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

namespace {

Site* all_sites = nullptr;

void note(std::uintptr_t place, const How& how) {
  for (std::size_t i = place * 0x9e3779b97f4a7c15ull % kMostSites, tried = 0; tried < kMostSites;
       i = (i + 1) % kMostSites, ++tried) {
    Site& site = all_sites[i];
    if (site.place && site.place != place) continue;
    site = {place, std::max(site.order, how.order), how.scope, site.passed + 1};
    return;
  }
}

}  // namespace

void note_sites(Site* sites) { all_sites = sites; }

void print_sites(const Site* sites) {
  constexpr const char* kOrders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
  constexpr const char* kScopes[] = {"block", "device", "system"};
  for (const Site* site = sites; site != sites + kMostSites; ++site)
    if (site->place)
      std::printf("  0x%llx %s, %s scope, %llu times\n", static_cast<unsigned long long>(site->place), kOrders[site->order],
                  kScopes[site->scope], static_cast<unsigned long long>(site->passed));
}

How done_so(How how) {
  const bool of_block = scheduler.self().device != 0;
  if (!of_block) how.scope = kSystem;
  if (!how.order && !of_block) return how;
  const std::uintptr_t place = scheduler.offset_of(how.where);
  if (all_sites) note(place, how);
  for (const Weakened& weak : scheduler.settings().weakened)
    if (place == weak.place) how.order = weak.order;
  for (const std::uintptr_t narrow : scheduler.settings().narrowed)
    if (place == narrow && of_block && how.scope) --how.scope;
  return how;
}

}  // namespace flywheel::simulate
