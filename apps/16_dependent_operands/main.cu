// Dependent operands: memory that a task names once the tasks before it are done, and that is then fetched into pages while
// other tasks compute. So what it names may have been chosen on the device.
//
// A mixture of experts: in each pass a router takes a token and chooses 2 of 8 matrices for it, whose products with the
// token are added up. A task makes 16 rows of the result, and needs a page of each chosen matrix.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <numeric>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace experts {

constexpr int kExperts = 8, kChosen = 2, kTokens = 64, kStripsOfWorker = 8, kRows = 16;  // rows of a strip
constexpr int kPage = flywheel::kPageBytes / sizeof(float), kColumns = kPage / kRows;    // 416

/// The place of an expert in the order of all. The sums here are of small whole numbers: none is rounded.
FLYWHEEL_TASK inline int place_of(const float* logits, int expert) {
  int place = 0;
  for (int other = 0; other < kExperts; ++other)
    place += logits[other] > logits[expert] || (logits[other] == logits[expert] && other < expert);
  return place;
}

struct Route {
  const float *tokens, *router;  // [kTokens][kColumns], [kExperts][kColumns]
  int* chosen;                   // [kChosen]
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const float* token = tokens + block.iteration() % kTokens * kColumns;
    float logits[kExperts] = {};
    block.for_each(kColumns, [&](int i) {
      for (int expert = 0; expert < kExperts; ++expert) logits[expert] += router[expert * kColumns + i] * token[i];
    });
    for (float& logit : logits) logit = block.reduce(logit, [](float a, float b) { return a + b; });
    block.for_each(kExperts, [&](int expert) {
      const int place = place_of(logits, expert);
      if (place < kChosen) chosen[place] = expert;
    });
  }
};

/// A strip of the mixture. It reads the matrices where they lie.
struct Mix {
  const float *tokens, *matrices;  // matrices: [kExperts][strips][kRows][kColumns]
  const int* chosen;
  float* out;  // [strips][kRows]
  int strip, strips;
  bool on_gpu;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    mix(
        block, [&](int place) { return rows_of(chosen[place]); }, [] {});
  }

 protected:
  FLYWHEEL_TASK const float* rows_of(int expert) const {
    return matrices + static_cast<std::size_t>(expert * strips + strip) * kPage;
  }
  /// On a GPU each warp has two rows; a CPU's one thread has all.
  template <class Block, class Take, class Release>
  FLYWHEEL_TASK void mix(Block& block, Take&& take, Release&& release) const {
    constexpr int kLanes = Block::kOnGpu ? 32 : 1, kWarps = Block::size() / kLanes, kSums = kRows / kWarps;
    const int lane = block.rank() % kLanes, warp = block.rank() / kLanes;
    float token[kColumns / kLanes], sums[kSums] = {};
    for (int i = 0; i < kColumns / kLanes; ++i) token[i] = tokens[block.iteration() % kTokens * kColumns + i * kLanes + lane];
    for (int place = 0; place < kChosen; ++place) {
      const float* rows = take(place) + warp * kColumns + lane;
      for (int i = 0; i < kColumns / kLanes; ++i)
        for (int row = 0; row < kSums; ++row) sums[row] += token[i] * rows[row * kWarps * kColumns + i * kLanes];
      release();
    }
    for (int row = 0; row < kSums; ++row) {
      if constexpr (Block::kOnGpu)
        for (int apart = 16; apart; apart /= 2) sums[row] += block.shuffle_xor(sums[row], apart);
      if (lane == 0) out[strip * kRows + row * kWarps + warp] = sums[row];
    }
  }
};

/// The same from pages: a task's are fetched while the task before it on the same worker computes.
struct MixPages : Mix {
  std::uint32_t dependent_pages() const { return kChosen; }  // as many whatever is chosen
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (int place = 0; place < kChosen; ++place) fetch(rows_of(chosen_in(place)), flywheel::kPageBytes);
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    mix(
        block, [&](int) { return reinterpret_cast<const float*>(operands.consumer_wait()); },
        [&] { operands.consumer_release(); });
  }

 private:
  /// Graph::add() asks as well, on the host, which cannot read a GPU's memory: any expert of the same size will do there.
  FLYWHEEL_TASK int chosen_in(int place) const {
#ifdef __CUDA_ARCH__
    return chosen[place];
#else
    return on_gpu ? 0 : chosen[place];
#endif
  }
};

/// Whole numbers from -4 to 3.
std::vector<float> numbers(std::size_t count, std::uint32_t x) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((x = x * 1664525 + 1013904223) >> 29) - 4;
  return values;
}

struct Model {
  int strips;
  std::vector<float> tokens, router, matrices;
  explicit Model(std::uint32_t workers)
      : strips(static_cast<int>(workers) * kStripsOfWorker),
        tokens(numbers(kTokens * kColumns, 1)),
        router(numbers(kExperts * kColumns, 2)),
        matrices(numbers(static_cast<std::size_t>(kExperts * strips) * kPage, 3)) {}

  float product(const std::vector<float>& rows, std::size_t row, int token) const {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
    return std::inner_product(begin, begin + kColumns, tokens.begin() + token * kColumns, 0.f);
  }
  std::vector<float> plain_loop(int token) const {
    float logits[kExperts];
    for (int expert = 0; expert < kExperts; ++expert) logits[expert] = product(router, expert, token);
    std::vector<float> out(strips * kRows);
    for (int expert = 0; expert < kExperts; ++expert)
      for (std::size_t row = 0; row < out.size() && place_of(logits, expert) < kChosen; ++row)
        out[row] += product(matrices, expert * out.size() + row, token);
    return out;
  }
};

template <class Task>
flywheel::Executable load(flywheel::Runtime& rt, const Route& route, Mix mix) {
  flywheel::Graph g;
  g.stage("router");
  const auto routed = g.add(route);
  g.stage("experts");
  for (mix.strip = 0; mix.strip < mix.strips; ++mix.strip)
    g.place(g.add(Task{mix}, after(routed)), static_cast<std::uint32_t>(mix.strip) % rt.workers());
  return rt.load(g, flywheel::compiled);
}

}  // namespace experts

int main() {
  using namespace experts;
  flywheel::Runtime rt = flywheel::start<Route, Mix, MixPages>();
  const Model model(rt.workers());
  const auto tokens = rt.upload(model.tokens), router = rt.upload(model.router), matrices = rt.upload(model.matrices);
  const auto plain_out = rt.allocate<float>(model.strips * kRows), out = rt.allocate<float>(model.strips * kRows);
  const auto chosen = rt.allocate<int>(kChosen);
  const Route route{tokens.data(), router.data(), chosen.data()};
  const auto load_with = [&]<class Task>(Task, const flywheel::Buffer<float>& to) {
    return load<Task>(rt, route, {tokens.data(), matrices.data(), chosen.data(), to.data(), 0, model.strips, rt.on_gpu()});
  };
  const flywheel::Executable plain = load_with(Mix{}, plain_out), pages = load_with(MixPages{}, out);
  for (const int passes : {1, 2, 7}) {
    rt.submit(plain, flywheel::repeat(passes)).wait();
    rt.submit(pages, flywheel::repeat(passes)).wait();
    const std::vector<float> wanted = model.plain_loop(passes - 1);
    if (plain_out.read() != wanted || out.read() != wanted) return 1;
  }
  measure::print_gain(rt, "dependent operands", measure::time_in_turns(rt, plain, pages));
  return 0;
}
