#include "apps/llama/tuned/share.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace llama {

namespace {
/// Sharing out would never end.
[[noreturn]] void cannot_share(const std::string& what) { throw std::invalid_argument("Sharer: " + what); }

std::size_t checked_workers(int workers) {
  if (workers < 1) cannot_share(std::to_string(workers) + " workers: share out over 1 or more");
  return static_cast<std::size_t>(workers);
}
}  // namespace

Sharer::Sharer(int workers) : debts_(checked_workers(workers), 0.), late_(debts_) {}

std::vector<Share> Sharer::operator()(int units, double unit_bytes, int most) {
  if (units < 0) cannot_share(std::to_string(units) + " units: give 0 or more");
  if (!(unit_bytes > 0)) cannot_share("units of " + std::to_string(unit_bytes) + " bytes: give more than 0");
  if (most < 1) cannot_share("shares of at most " + std::to_string(most) + " units: allow 1 or more");
  const int workers = static_cast<int>(debts_.size());
  for (double& debt : debts_) debt += units * unit_bytes / workers;
  const std::vector<int> counts = count_units(units, unit_bytes);
  std::fill(late_.begin(), late_.end(), 0.);
  std::vector<Share> shares;
  int first = 0;
  for (std::size_t w = 0; w < debts_.size(); ++w) {
    debts_[w] -= counts[w] * unit_bytes;
    for (int left = counts[w]; left > 0; left -= most) {
      const int count = std::min(left, most);
      shares.push_back({static_cast<int>(w), first, count});
      first += count;
    }
  }
  return shares;
}

std::vector<int> Sharer::occupy(int count, double bytes) {
  const std::vector<std::size_t> order = by_debt();
  std::vector<int> workers;
  for (int i = 0; i < count; ++i) {
    const std::size_t worker = order.at(order.size() - 1 - static_cast<std::size_t>(i));
    late_[worker] = bytes;
    workers.push_back(static_cast<int>(worker));
  }
  return workers;
}

/// Indices by what each is owed, the most first.
std::vector<std::size_t> Sharer::by_debt() const {
  std::vector<std::size_t> order(debts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return debts_[a] > debts_[b]; });
  return order;
}

/// Of each worker, so that all are done at the same time but for one unit: level after level, who can be done by then.
std::vector<int> Sharer::count_units(int units, double unit_bytes) const {
  const std::vector<std::size_t> order = by_debt();
  std::vector<int> counts(debts_.size(), 0);
  for (int level = 1;; ++level)
    for (const std::size_t worker : order) {
      if (units == 0) return counts;
      if (late_[worker] + (counts[worker] + 1) * unit_bytes > level * unit_bytes) continue;
      ++counts[worker], --units;
    }
}

}  // namespace llama
