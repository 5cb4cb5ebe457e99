// What the blocks of task bodies tell of lanes and warps on a GPU, and that for_each() leaves the lanes of a warp together.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "catch.hpp"
#include "support/lane_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options on_gpu(bool checked) {
  Options options;
  options.target = Target::gpu;
  options.check_operands = checked;
  return options;
}

/// After loops in which lanes have different numbers of items, each of its own length, all lanes run what follows at once.
/// The last loop ends the body, so that the next task's begins where the lanes may still be apart.
struct Rejoins {
  std::uint32_t* apart;  // warps' lanes that found others missing
  std::uint32_t* sum;
  int items;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    look(block);
    block.for_each(items, [&](int i) {
      for (int turn = 0; turn < i % 5; ++turn) add_to(*sum, 1u);
    });
    look(block);
    block.for_each(items, [&](int i) { add_to(*sum, static_cast<std::uint32_t>(i)); });
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void look([[maybe_unused]] Block& block) const {
#ifdef __CUDA_ARCH__
    if (__activemask() != 0xffffffffu) add_to(*apart, 1u);
#endif
  }
};

}  // namespace

TEST_CASE("lanes and warps are what every block says they are, and exchange values") {
  for (const bool checked : {false, true}) {
    Runtime runtime = start<Lanes, StoredLanes>(on_gpu(checked));
    check_lanes(runtime);
  }
}

TEST_CASE("for_each() leaves the lanes of a warp together, whatever the number of items") {
  Runtime runtime = start<Rejoins>(on_gpu(false));
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(2);
  Graph graph;
  for (int task = 0; task < 300; ++task) graph.add(Rejoins{words.data(), words.data() + 1, task});
  runtime.submit(runtime.load(graph)).wait();
  runtime.submit(runtime.load(graph, compiled), repeat(5)).wait();
  CHECK(words.read()[0] == 0);
  CHECK(words.read()[1] != 0);
}
