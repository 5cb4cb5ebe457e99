#include "apps/llama/fast/share.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace flywheel::llama {

std::vector<Share> Sharer::operator()(int units, double unit_bytes, int most) {
  const std::size_t workers = debts_.size();
  const double fair = units * unit_bytes / static_cast<double>(workers);
  std::vector<int> counts(workers);
  int given = 0;
  for (std::size_t w = 0; w < workers; ++w) {
    debts_[w] += fair;
    counts[w] = std::max(0, static_cast<int>(std::floor(debts_[w] / unit_bytes)));
    given += counts[w];
  }
  // Rounding left some over (or, after a coarser matrix, gave too many): the largest debts get more, the smallest less.
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rest = [&](std::size_t w) { return debts_[w] - counts[w] * unit_bytes; };
  while (given != units) {
    const bool more = given < units;
    const auto worker = *std::max_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return more ? rest(a) < rest(b) : (counts[a] ? -rest(a) : -1e300) < (counts[b] ? -rest(b) : -1e300);
    });
    counts[worker] += more ? 1 : -1;
    given += more ? 1 : -1;
  }
  std::vector<Share> shares;
  int first = 0;
  for (std::size_t w = 0; w < workers; ++w) {
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
