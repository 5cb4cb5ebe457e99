// A graph that decides on the way: a task has a continuation that adds up what its children found, a loop goes on until the
// answer is good enough, and a choice says which task reports it. The integral of sin(1/x) from 0.01 to 1, in halves where it
// is wild: each round halves finer until two rounds agree.
//
// The same rounds, each as a run of its own whose answer the host waits for, show what deciding on the device buys.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace control {

constexpr double kFrom = 0.01, kTo = 1;
constexpr double kCloseEnough = 1e-9;
constexpr std::uint32_t kMostRounds = 12, kMostDepth = 16, kPoints = 64;

FLYWHEEL_TASK inline double height(double x) { return sin(1 / x); }

/// What the rounds share.
struct Answer {
  double last, tolerance;  // the integral that the round before found; how much halves may differ from the whole
  std::uint32_t rounds;
};

/// Adds up two halves.
struct Add {
  double* parts;
  std::uint32_t part;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) parts[part] = parts[2 * part] + parts[2 * part + 1];
  }
};

/// The integral of one piece into parts[part]. Those of its halves go to 2 * part and 2 * part + 1.
struct Integrate {
  double* parts;
  const Answer* answer;
  double from, to;
  std::uint32_t part, depth;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const double whole = sum(block, kPoints), halves = sum(block, 2 * kPoints), middle = (from + to) / 2;
    if (!block.leader()) return;
    parts[part] = halves;
    if (fabs(whole - halves) < answer->tolerance || depth == kMostDepth) return;
    if (!block.then(Add{parts, part})) return block.fail(1);  // no room: raise Options::spawn_capacity
    for (std::uint32_t half = 0; half < 2; ++half) {
      const Integrate next{parts, answer, half ? middle : from, half ? to : middle, 2 * part + half, depth + 1};
      if (!block.spawn(next)) block.fail(1);
    }
  }

 private:
  /// By the rule of Simpson, with all threads.
  template <class Block>
  FLYWHEEL_TASK double sum(Block& block, std::uint32_t points) const {
    const double step = (to - from) / points;
    double mine = 0;
    block.for_each(static_cast<int>(points) + 1, [&](int i) {
      const double weight = i == 0 || i == static_cast<int>(points) ? 1 : i % 2 ? 4 : 2;
      mine += weight * height(from + i * step);
    });
    return block.reduce(mine, [](double a, double b) { return a + b; }) * step / 3;
  }
};

enum Outcome : std::uint32_t { kGood, kGaveUp };

/// Ends a round.
struct Check {
  const double* parts;
  Answer* answer;
  template <class Block>
  FLYWHEEL_TASK bool operator()(Block& block) const {
    const bool good = fabs(parts[1] - answer->last) < kCloseEnough, out = answer->rounds + 1 == kMostRounds;
    block.sync();  // all have read the answer
    if (block.leader()) {
      *answer = {parts[1], answer->tolerance / 32, answer->rounds + 1};
      if (good) block.choose(kGood);
      else if (out) block.choose(kGaveUp);
      else block.again();  // outside of a loop this fails the task
    }
    return good;
  }
};
/// The same for a host that decides.
struct Compare {
  const double* parts;
  Answer* answer;
  template <class Block>
  FLYWHEEL_TASK bool operator()(Block& block) const {
    const bool good = fabs(parts[1] - answer->last) < kCloseEnough;
    block.sync();
    if (block.leader()) *answer = {parts[1], answer->tolerance / 32, answer->rounds + 1};
    return good;
  }
};
struct Report {
  const Answer* answer;
  double scale;
  template <class Block>
  FLYWHEEL_TASK double operator()(Block&) const {
    return answer->last * scale;
  }
};

/// Pieces so fine that no rule matters.
double plainly() {
  constexpr int kPieces = 4'000'000;
  double sum = 0;
  for (int i = 0; i < kPieces; ++i) sum += height(kFrom + (i + 0.5) * (kTo - kFrom) / kPieces);
  return sum * (kTo - kFrom) / kPieces;
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace control

int main() {
  using namespace control;
  flywheel::Options options;
  options.spawn_capacity = 1 << 16;  // pieces, and continuations that wait, at once
  flywheel::Runtime rt = flywheel::start<Integrate, Add, Check, Compare, Report>(options);
  const auto parts = rt.allocate<double>(std::size_t{2} << kMostDepth);
  auto answer = rt.allocate<Answer>(1);
  const Answer start{0, 1e-4, 0};
  const Integrate whole{parts.data(), answer.data(), kFrom, kTo, 1, 0};

  flywheel::Graph g, round;
  const auto first = g.add(whole);
  const auto check = g.add(Check{parts.data(), answer.data()}, after(first));
  g.loop(first, check);
  const auto good = g.add(Report{answer.data(), 1}, when(check, kGood));
  g.add(Report{answer.data(), 0}, when(check, kGaveUp));
  const flywheel::Executable looped = rt.load(g);
  const auto compared = round.add(Compare{parts.data(), answer.data()}, after(round.add(whole)));
  const flywheel::Executable one_round = rt.load(round);

  double on_device = 1e9, with_host = 1e9, integral = 0;
  for (int turn = 0; turn < 9; ++turn) {
    answer.write(&start, 1);
    const auto begin = std::chrono::steady_clock::now();
    integral = rt.submit(looped).get(good);
    on_device = std::min(on_device, us_since(begin));
    answer.write(&start, 1);
    const auto again = std::chrono::steady_clock::now();
    while (!rt.submit(one_round).get(compared)) {}
    with_host = std::min(with_host, us_since(again));
  }
  Answer last;
  answer.read(&last, 1);
  std::printf("%s: %.9f after %u rounds: %.0f us, decided on the device; %.0f if the host decides each round: %.2fx\n",
              rt.device().c_str(), integral, last.rounds, on_device, with_host, with_host / on_device);
  return std::fabs(integral - plainly()) < 1e-8 && last.rounds < kMostRounds ? 0 : 1;
}
