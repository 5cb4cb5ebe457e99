// Tasks that spawn tasks: a search tree that grows while it is searched. How many ways are there to put 12 queens on
// a 12 x 12 board so that none attacks another?
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdint>
#include <cstdio>

namespace queens {

constexpr int kQueens = 12, kSpawnRows = 3;

struct Board {  // queens in the first rows; bit c of each mask: column c of the next row is attacked
  std::uint32_t columns, left, right;
  int rows;

  FLYWHEEL_TASK bool free(int column) const { return !((columns | left | right) >> column & 1); }
  FLYWHEEL_TASK Board with(int column) const {
    const std::uint32_t queen = 1u << column;
    return {columns | queen, (left | queen) << 1, (right | queen) >> 1, rows + 1};
  }
  /// Ways to complete this board: a plain search, with a stack of its own.
  FLYWHEEL_TASK std::uint64_t solutions() const {
    struct {
      Board board;
      int column;
    } stack[kQueens + 1];
    std::uint64_t found = 0;
    int depth = 0;
    stack[0] = {*this, 0};
    while (depth >= 0) {
      const Board board = stack[depth].board;
      const int column = stack[depth].column++;
      const bool full = board.rows == kQueens;
      found += full;
      if (full || column == kQueens) --depth;
      else if (board.free(column)) stack[++depth] = {board.with(column), 0};
    }
    return found;
  }
};

struct Search {
  Board board;
  std::uint64_t* found;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(kQueens, [&](int column) {  // each thread tries a column
      if (!board.free(column)) return;
      const Board next = board.with(column);
      if (next.rows < kSpawnRows && block.spawn(Search{next, found})) return;
      // Deep enough, or no room for more tasks just now: search on here.
      flywheel::AtomicRef<std::uint64_t, flywheel::Scope::device>(*found).fetch_add(next.solutions(), flywheel::Order::relaxed);
    });
  }
};

struct Total {
  const std::uint64_t* found;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block&) const {
    return *found;
  }
};

}  // namespace queens

int main() {
  using namespace queens;
  flywheel::Runtime rt = flywheel::start<Search, Total>();
  const auto found = rt.allocate<std::uint64_t>(1);
  flywheel::Graph g;
  const auto root = g.add(Search{{}, found.data()});
  const auto total = g.add(Total{found.data()}, after(root));  // waits for all that the root spawned, too
  const std::uint64_t solutions = rt.submit(rt.load(g)).get(total);
  rt.shutdown();  // so that every worker has told its counters
  std::printf("%d queens: %llu solutions, found by %llu tasks that grew from one\n", kQueens,
              static_cast<unsigned long long>(solutions), static_cast<unsigned long long>(rt.stats().tasks - 1));
  return solutions == Board{}.solutions() ? 0 : 1;
}
