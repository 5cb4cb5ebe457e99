// A point of a graph as a task: it looks at what its inputs have written, does the work of its kernel, and writes a cell of its
// own. The same code in bodies of the runtime and in kernels of the peers.
#pragma once

#include <math.h>  // fmaf, by the name that both compilers know

#include "apps/measure/work_clock.hpp"
#include "apps/taskbench/shape.hpp"

namespace taskbench {

/// What a point leaves behind: who it is, in which run, and a hash of itself and of all it depends on.
struct alignas(16) Cell {
  std::uint32_t step;
  std::uint16_t point, run;
  std::uint64_t hash;
  bool operator==(const Cell&) const = default;
};

/// What tasks do besides checking: nothing; four independent chains of fused multiply-adds in each thread; copying within a
/// buffer of the point; letting one thread spin.
enum class Kernel : std::uint8_t { empty, compute, memory, busy_wait };

/// What differs from run to run of the same graphs.
struct RunSettings {
  std::uint32_t iterations = 0;  // of the kernel, before imbalance; for busy_wait ticks of work_clock()
  std::uint16_t run = 1;         // a number that no run has had lately; never 0, which is what fresh cells hold
  Kernel kernel = Kernel::empty;
  Imbalance imbalance = Imbalance::none;
};
inline constexpr int kFlopsOfIteration = 2 * 4;                                      // compute: in each thread
inline constexpr std::uint32_t kPieceBytes = 4096, kPieceChunks = kPieceBytes / 16;  // memory: copied in an iteration

/// What the checks of the tasks have found wrong.
struct Faults {
  std::uint32_t count;
  std::uint32_t step, point, from;  // one of them: who read, and what
};

struct alignas(16) Chunk {
  std::uint32_t words[4];
};

/// What the points of one graph share.
struct GraphData {
  Shape shape;
  Cell* cells;     // a row for each step, so no point waits until its cell has been read
  Chunk* scratch;  // 2 x pieces x kPieceBytes for each point
  Faults* faults;
  std::uint32_t pieces;
  std::uint32_t wrong_step, wrong_point;  // this point writes a wrong cell, so that a test can see that it is found
};

struct PointId {
  std::uint32_t step;
  std::uint16_t point, graph;
};

FLYWHEEL_TASK inline std::uint32_t iterations_of(const Shape& shape, std::uint32_t step, std::uint32_t point,
                                                 const RunSettings& settings) {
  if (settings.imbalance == Imbalance::none) return settings.iterations;
  const std::uint32_t factor = factor_of(settings.imbalance, draw(shape.seed, shape.graph, step, point));
  return static_cast<std::uint32_t>(std::uint64_t{settings.iterations} * factor >> 16);
}

/// What an input adds to the sum of its reader, in any order; what a point adds itself; and its hash.
FLYWHEEL_TASK inline std::uint64_t share_of(std::uint64_t input_hash, std::uint32_t from) { return mix(input_hash + from); }
FLYWHEEL_TASK inline std::uint64_t own_share(const Shape& shape, std::uint32_t step, std::uint32_t point, std::uint16_t run) {
  return draw(shape.seed, shape.graph, step, std::uint64_t{run} << 32 | point);
}
FLYWHEEL_TASK inline std::uint64_t hash_of(const Shape& shape, std::uint32_t step, std::uint32_t point, std::uint16_t run,
                                           std::uint64_t sum) {
  return mix(sum + own_share(shape, step, point, run));
}

FLYWHEEL_TASK inline void note_fault(Faults& faults, std::uint32_t step, std::uint32_t point, std::uint32_t from) {
  // Relaxed: a count. The host reads it, and what the first one left beside it, after the run.
  flywheel::AtomicRef<std::uint32_t, flywheel::Scope::device> count(faults.count);
  if (count.fetch_add(1, flywheel::Order::relaxed) != 0) return;
  faults.step = step;
  faults.point = point;
  faults.from = from;
}

/// Which of the cells of a graph is a point's.
FLYWHEEL_TASK inline std::size_t cell_index(const Shape& shape, std::uint32_t step, std::uint32_t point) {
  return std::size_t{step} * shape.width + point;
}
inline constexpr std::size_t kNoCell = ~std::size_t{0};

/// Cells in plain memory: the runtime, or the peer, has the tasks that write them end before those that read them begin.
struct PlainCells {
  Cell* cells;
  /// False if there is none. All lanes of a warp call it.
  FLYWHEEL_TASK bool read(std::size_t at, Cell& to) const {
    if (at == kNoCell) return false;
    to = cells[at];
    return true;
  }
  FLYWHEEL_TASK void write(std::size_t at, const Cell& cell) const { cells[at] = cell; }
};

/// Checks an input and returns its share; 0 if there is none.
template <class Cells>
FLYWHEEL_TASK std::uint64_t read_input(const GraphData& graph, const Cells& cells, std::uint32_t step, std::uint32_t point,
                                       std::int64_t input, std::uint16_t run) {
  const std::uint32_t from = static_cast<std::uint32_t>(input);
  Cell cell;
  if (!cells.read(input == kNoInput ? kNoCell : cell_index(graph.shape, step - 1, from), cell)) return 0;
  if (cell.step != step - 1 || cell.point != from || cell.run != run) note_fault(*graph.faults, step, point, from);
  return share_of(cell.hash, from);
}

/// Checks all inputs of a point and returns the sum of their shares. Each warp does it for itself, a lane for every input, so
/// no thread waits for another warp.
template <class Block, class Cells>
FLYWHEEL_TASK std::uint64_t gather(Block& block, const GraphData& graph, const Cells& cells, std::uint32_t step,
                                   std::uint32_t point, std::uint16_t run) {
  const std::uint32_t candidates = candidate_count(graph.shape), lanes = Block::kLanes;
  const std::uint32_t lane = static_cast<std::uint32_t>(block.lane()), set = set_of(graph.shape, step);
  std::uint64_t sum = 0;
  for (std::uint32_t first = 0; first < candidates; first += lanes) {
    const std::uint32_t k = first + lane;
    const std::int64_t input = k < candidates ? input_of(graph.shape, set, step, point, k) : kNoInput;
    sum += read_input(graph, cells, step, point, input, run);
  }
  for (std::uint32_t other = 1; other < lanes && other < candidates; other *= 2)
    sum += block.shuffle(sum, static_cast<int>(lane ^ other));
  return block.shuffle(sum, 0);
}

/// The chains begin with what the inputs have said, and come close to 2. False if they do not.
FLYWHEEL_TASK inline bool compute(std::uint32_t iterations, std::uint64_t sum) {
  float chain[4];
  for (int i = 0; i < 4; ++i) chain[i] = 1 + static_cast<float>(sum >> (8 * i) & 0xff) / 256;
  for (std::uint32_t n = 0; n < iterations; ++n)
    for (float& value : chain) value = fmaf(value, 0.75f, 0.5f);
  const float total = chain[0] + chain[1] + chain[2] + chain[3];
  return total >= 4 && total <= 12;
}

/// Copies pieces of the first half of the point's scratch memory to the second, those that follow on what the step before has
/// copied. Nobody writes the first half, so tasks of one point in two steps at once, as `trivial` has them, write the same.
template <class Block>
FLYWHEEL_TASK void copy_pieces(Block& block, const GraphData& graph, std::uint32_t step, std::uint32_t point,
                               std::uint32_t iterations) {
  const Chunk* from = graph.scratch + std::size_t{point} * 2 * graph.pieces * kPieceChunks;
  Chunk* to = graph.scratch + (std::size_t{point} * 2 + 1) * graph.pieces * kPieceChunks;
  for (std::uint32_t n = 0; n < iterations; ++n) {
    const std::uint32_t at = (step * iterations + n) % graph.pieces * kPieceChunks;
    block.for_each(static_cast<int>(kPieceChunks), [&](int i) { to[at + i] = from[at + i]; });
  }
}

template <class Block>
FLYWHEEL_TASK void do_work(Block& block, const GraphData& graph, std::uint32_t step, std::uint32_t point,
                           const RunSettings& settings, std::uint64_t sum) {
  const std::uint32_t iterations = iterations_of(graph.shape, step, point, settings);
  if (settings.kernel == Kernel::compute && !compute(iterations, sum)) note_fault(*graph.faults, step, point, point);
  if (settings.kernel == Kernel::memory) copy_pieces(block, graph, step, point, iterations);
  if (settings.kernel == Kernel::busy_wait && block.leader()) measure::spin_for(iterations);
}

/// All threads of a block call it.
template <class Block, class Cells>
FLYWHEEL_TASK void run_point(Block& block, const GraphData& graph, const Cells& cells, std::uint32_t step, std::uint32_t point,
                             const RunSettings& settings) {
  const std::uint64_t own = own_share(graph.shape, step, point, settings.run);  // while the inputs are on their way
  const std::uint64_t sum = gather(block, graph, cells, step, point, settings.run);
  if (settings.kernel != Kernel::empty) do_work(block, graph, step, point, settings, sum);
  if (!block.leader()) return;
  Cell cell{step, static_cast<std::uint16_t>(point), settings.run, mix(sum + own)};
  if (step == graph.wrong_step && point == graph.wrong_point) cell.step ^= 1, cell.hash ^= 1;
  cells.write(cell_index(graph.shape, step, point), cell);
}

}  // namespace taskbench
