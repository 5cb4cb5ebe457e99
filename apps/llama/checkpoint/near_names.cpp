#include "apps/llama/checkpoint/near_names.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace llama {
namespace {

// Tensor names are short; a longer one comes from a broken file, and its tail tells nothing.
constexpr std::size_t kComparedLength = 128;

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kComparedLength);
  b = b.substr(0, kComparedLength);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string near_names(std::string_view name, const std::vector<std::string>& names, std::size_t count) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string& candidate : names) ranked.emplace_back(edit_distance(name, candidate), candidate);
  const std::size_t kept = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept), ranked.end());
  std::string text;
  for (std::size_t i = 0; i < kept; ++i) {
    text += (i == 0 ? "\"" : ", \"") + std::string(ranked[i].second) + "\"";
  }
  return text;
}

}  // namespace llama
