// Threads that do anything a program may do with runs, in any order, while the runtime parks now and then.
#include <deque>

#include "simulate/workloads/new_work.hpp"

namespace flywheel::simulate {

namespace {

/// One of the program's threads.
class User {
 public:
  User(Runtime& runtime, Ledger& ledger, std::uint64_t seed)
      : runtime_(runtime),
        ledger_(ledger),
        random_(random_of_thread(seed)),
        new_work_(runtime, ledger, random_) {}

  void operator()(std::uint32_t acts) {
    jobs_.push_back(random_jobs(random_, runtime_, 6));
    submit();
    for (std::uint32_t i = 0; i < acts; ++i) act();
    while (!held_.empty()) signal_done();
    while (new_work_.held()) new_work_.end_one();
  }

 private:
  struct Held {
    Run run;
    std::uint32_t number;
  };

  void act() {
    switch (random_.one_of(20)) {
      case 0:
        return load_more();
      case 1:
        return cancel_one();
      case 2:
        return drop_one();
      case 3:
        return look_at_one();
      case 4:
        return rest();
      case 5:
        return held_.empty() ? submit() : signal_done();
      case 6:
        return shuffle();
      case 7:
        return ask_for_stream();
      case 8:
        return take_memory();
      case 9:
        return runtime_.yield();
      case 10:
        return pause();
      case 11:
        return new_work_.submit_single(some_before());
      case 12:
        return new_work_.submit_range(some_before());
      case 13:
        return random_.one_in(2) ? new_work_.look() : new_work_.end_one();
      case 14:
        return random_.one_in(3) ? new_work_.drop() : new_work_.submit_single(some_before());
      default:
        return submit();
    }
  }

  /// Up to five runs, batches and single tasks, once in a while.
  Followed some_before() {
    Followed before;
    if (!random_.one_in(4)) return before;
    for (std::uint32_t i = 1 + random_.below(5); i; --i) {
      const Held* const one = random_.one_in(3) ? nullptr : any();
      if (one) before.add(one->run, one->number);
      else new_work_.add_one(before);
    }
    return before;
  }

  void submit() {
    const Jobs& jobs = jobs_[random_.below(static_cast<std::uint32_t>(jobs_.size()))];
    const Followed before = some_before();
    const std::uint32_t passes = 1 + random_.below(3), number = ledger_.open(jobs, passes, before);
    if (number == Ledger::kMost) return;
    const auto level = static_cast<Priority>(random_.below(3));
    if (random_.one_in(2)) {
      held_.push_back(
          {runtime_.submit(jobs.executable, level, repeat(passes), set(jobs.number, number_of(level, number)), before.runs),
           number});
      return;
    }
    auto run =
        runtime_.try_submit(jobs.executable, set(jobs.number, number_of(level, number)), level, before.runs, repeat(passes));
    if (run) held_.push_back({*run, number});
    else ledger_.strike(number);
  }

  /// Loaded graphs come and go; the last handle of one may go while its runs are in flight.
  void load_more() {
    if (jobs_.size() > 1) jobs_.erase(jobs_.begin() + random_.below(static_cast<std::uint32_t>(jobs_.size())));
    try {
      jobs_.push_back(random_jobs(random_, runtime_, 6));
    } catch (const CapacityError&) {  // runs keep those that were dropped
      if (jobs_.empty()) throw;
    }
  }

  Held* any() { return held_.empty() ? nullptr : &held_[random_.below(static_cast<std::uint32_t>(held_.size()))]; }

  void cancel_one() {
    if (Held* one = any()) ledger_.at(one->number).cancelled = true, one->run.cancel();
  }
  void drop_one() {
    if (!held_.empty()) held_.pop_front();
  }
  void look_at_one() {
    Held* const one = any();
    if (!one) return;
    const bool done = random_.one_in(2) ? one->run.done() : one->run.wait_for(std::chrono::microseconds(random_.below(50)));
    expect(!done || one->run.done(), "a run that was over is not any more");
    expect(!one->run.try_next<std::uint32_t>(), "a run streams though its tasks do not");
  }
  void rest() { std::this_thread::sleep_for(std::chrono::microseconds(random_.below(random_.one_in(4) ? 20'000 : 200))); }
  void pause() {
    const Pause guard(runtime_);
    const Stats stats = runtime_.stats();
    expect(stats.launches == stats.parks, "a kernel was resident while a Pause lived");
    if (random_.one_in(2)) rest();
  }
  void shuffle() {
    if (held_.size() < 2) return;
    Held moved = std::move(held_.back());
    held_.pop_back();
    held_.push_front(std::move(moved));
  }
  void ask_for_stream() {
    try {
      runtime_.submit_after(nullptr, jobs_[0].executable);
    } catch (const UsageError&) {
      return;
    }
    wrong("CPU workers were given a CUDA stream");
  }
  /// More than the heap has, at times: then the runtime parks to take more.
  void take_memory() {
    const Buffer<std::uint32_t> memory = runtime_.allocate<std::uint32_t>(random_.one_in(2) ? 8 : 1500);
    for (const std::uint32_t word : memory.read()) expect(word == 0, "memory is not zeroed");
  }
  void signal_done() {
    Held one = std::move(held_.front());
    held_.pop_front();
    ledger_.note(one.number, one.run.status());
  }

  Runtime& runtime_;
  Ledger& ledger_;
  Random random_;
  NewWork new_work_;
  std::vector<Jobs> jobs_;
  std::deque<Held> held_;
};

}  // namespace

void run_mixed(Random& random) {
  Options options = options_of(random, 6);
  options.max_executables = 16;
  const std::uint32_t users = 1 + random.below(3), acts = 3 + random.below(10);
  run_users(options, random, users, acts,
            [acts](Runtime& runtime, Ledger& ledger, std::uint64_t seed) { User(runtime, ledger, seed)(acts); });
}

}  // namespace flywheel::simulate
