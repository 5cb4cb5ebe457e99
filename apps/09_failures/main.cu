// Things go wrong: a task fails, a run is cancelled, a graph has a cycle, a buffer is null. Each says what happened, to
// what, and what to do next; the other runs go on.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <cstdio>
#include <string>

namespace failures {

struct Divide {
  const int *above, *below;
  int* out;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    if (*below == 0) {
      block.fail(42);  // a code of our own
      return 0;
    }
    if (block.leader()) *out = *above / *below;
    return *above / *below;
  }
  template <class F>
  void buffers(F&& f) const {
    f("above", above), f("below", below), f("out", out);
  }
};

struct Forever {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    while (!block.cancelled()) {}
  }
};

int unexpected = 0;

/// Runs `action`, which must throw an Error that says `word`, and prints what it says.
template <class Error, class Action>
void expect(const char* title, const char* word, Action&& action) {
  try {
    action();
    std::printf("%s: no error, and there should be one\n", title);
    ++unexpected;
  } catch (const Error& error) {
    std::printf("%s:\n  %s\n", title, error.what());
    unexpected += std::string(error.what()).find(word) == std::string::npos;
  }
}

}  // namespace failures

int main() {
  using namespace failures;
  flywheel::Runtime rt = flywheel::start<Divide, Forever>();
  const auto numbers = rt.upload(std::vector<int>{84, 2, 0, 0});
  int *n84 = numbers.data(), *n2 = n84 + 1, *n0 = n84 + 2, *out = n84 + 3;

  flywheel::Graph bad, good, endless, cycle, null;
  const auto by_zero = bad.add(Divide{n84, n0, out});
  bad.add(Divide{out, n2, out}, after(by_zero));  // skipped
  const auto by_two = good.add(Divide{n84, n2, out});
  endless.add(Forever{});
  const auto hen = cycle.add(Forever{}), egg = cycle.add(Forever{}, after(hen));
  cycle.edge(egg, hen);
  null.add(Divide{n84, nullptr, out});

  flywheel::Run failing = rt.submit(rt.load(bad)), cancelled = rt.submit(rt.load(endless));
  unexpected += cancelled.wait_for(std::chrono::milliseconds(20));  // not done by then: it never is
  cancelled.cancel();
  expect<flywheel::RunError>("a failing task", "task 0 (failures::Divide)", [&] { failing.wait(); });
  expect<flywheel::RunError>("a cancelled run", "cancelled", [&] { cancelled.wait(); });
  expect<flywheel::GraphError>("a cycle", "cycle", [&] { rt.load(cycle); });
  expect<flywheel::GraphError>("a null buffer", "buffer 'below'", [&] { rt.load(null); });

  flywheel::Run fine = rt.submit(rt.load(good));
  std::printf("and the next run is fine: 84 / 2 = %d\n", fine.get(by_two));
  return !unexpected && fine.get(by_two) == 42 ? 0 : 1;
}
