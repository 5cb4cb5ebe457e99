// Values reach the host while the run that makes them goes on: a search reports each new record as it finds it.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdint>
#include <cstdio>

namespace collatz {

constexpr std::uint32_t kSlab = 1'000, kSlabs = 300;

struct Chain {  // 8 bytes: the most a streamed value may have
  std::uint32_t steps, start;
};

/// Steps from `start` to 1, halving what is even and tripling and adding one to what is odd (Collatz).
FLYWHEEL_TASK inline Chain chain_from(std::uint32_t start) {
  Chain chain{0, start};
  for (std::uint64_t n = start; n != 1; ++chain.steps) n = n % 2 ? 3 * n + 1 : n / 2;
  return chain;
}
FLYWHEEL_TASK inline Chain longer(Chain a, Chain b) {
  return a.steps > b.steps || (a.steps == b.steps && a.start < b.start) ? a : b;
}

struct LongestChains {  // emits a chain whenever a thousand numbers hold a longer one than all before
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    Chain record{0, 1};
    for (std::uint32_t slab = 0; slab < kSlabs && !block.cancelled(); ++slab) {
      Chain best{0, 1};
      block.for_each(kSlab, [&](int i) { best = longer(best, chain_from(slab * kSlab + i + 1)); });
      best = block.reduce(best, [](Chain a, Chain b) { return longer(a, b); });
      if (best.steps > record.steps && block.leader()) block.emit(best);
      record = longer(record, best);
    }
  }
};

}  // namespace collatz

int main() {
  using namespace collatz;
  flywheel::Runtime rt = flywheel::start<LongestChains>();
  flywheel::Graph g;
  g.add(LongestChains{});
  flywheel::Run run = rt.submit(rt.load(g));

  bool right = true;
  int early = 0;
  Chain record{0, 1};
  while (const auto news = run.next<Chain>()) {  // waits for the next value; empty when the run is over
    early += !run.done();
    std::printf("from %7u: %3u steps\n", news->start, news->steps);
    right &= news->steps > record.steps && chain_from(news->start).steps == news->steps;
    record = *news;
  }
  std::printf("%d of them came before the run had ended\n", early);
  Chain best{0, 1};
  for (std::uint32_t start = 1; start <= kSlab * kSlabs; ++start) best = longer(best, chain_from(start));
  return right && best.start == record.start ? 0 : 1;
}
