// A tree of small nodes: the search of 06_spawn, where each board with one queen more is a node that a thread of its own looks
// at. How many ways are there to put 13 queens on a 13 x 13 board so that none attacks another?
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace tree {

constexpr std::uint32_t kQueens = 13;

/// One queen more: in the column that the node's index says, in the next row of a board. Of the board only the columns count
/// that are attacked there.
struct Queen {
  using Grain = flywheel::Thread;                  // a warp takes 32 such nodes at once
  static constexpr std::uint32_t kMostSpawns = 1;  // so its ring has room for more
  std::uint32_t columns, left, right, row;         // bit c of each mask: column c of the row is attacked

  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    const std::uint32_t queen = 1u << block.index();
    if ((columns | left | right) & queen) return 0;
    if (row + 1 == kQueens) return 1;
    block.spawn_n(Queen{columns | queen, (left | queen) << 1, (right | queen) >> 1, row + 1}, kQueens);
    return 0;
  }
};

/// The same by recursion.
std::uint64_t solutions(const Queen& board) {
  if (board.row == kQueens) return 1;
  std::uint64_t found = 0;
  for (std::uint32_t queen = 1; queen < 1u << kQueens; queen <<= 1)
    if (!((board.columns | board.left | board.right) & queen))
      found += solutions({board.columns | queen, (board.left | queen) << 1, (board.right | queen) >> 1, board.row + 1});
  return found;
}

int run() {
  flywheel::Runtime rt = flywheel::start<flywheel::TreeTask<Queen>>();
  flywheel::Tree<Queen> search(rt);
  const auto begin = std::chrono::steady_clock::now();
  flywheel::Run run = search.submit_n(Queen{0, 0, 0, 0}, kQueens);  // the first row: a root for each column
  const std::uint64_t found = search.get(run);                      // the sum of what all nodes returned
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t wanted = solutions(Queen{0, 0, 0, 0});
  std::printf("%u queens: %llu ways, found in %.2f ms by %u workers; recursion finds %llu\n", kQueens,
              static_cast<unsigned long long>(found), ms, rt.workers(), static_cast<unsigned long long>(wanted));
  return found == wanted ? 0 : 1;
}

}  // namespace tree

int main() {
  try {
    return tree::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "22_tree: %s\n", error.what());
    return 1;
  }
}
