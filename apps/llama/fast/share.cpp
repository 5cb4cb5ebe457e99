#include "apps/llama/fast/share.hpp"

#include <algorithm>
#include <numeric>

namespace flywheel::llama {

std::vector<Share> Sharer::operator()(int units, double unit_bytes, int most) {
  const int workers = static_cast<int>(debts_.size());
  for (double& debt : debts_) debt += units * unit_bytes / workers;
  std::vector<std::size_t> order(debts_.size());  // who has had least comes first
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return debts_[a] > debts_[b]; });
  std::vector<int> counts(debts_.size(), units / workers);
  for (int i = 0; i < units % workers; ++i) ++counts[order[static_cast<std::size_t>(i)]];
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

}  // namespace flywheel::llama
