// More runs than places, of all kinds and sizes: some need all workers, some much room, some are cancelled while they wait.
#include "simulate/workloads/jobs.hpp"

namespace flywheel::simulate {

namespace {

struct Waiting {
  Run run;
  std::uint32_t number;
  bool never = false;  // cancelled while it waited in the backlog
};

/// The threads that submit, and what they check of the backlog.
class Crowd {
 public:
  Crowd(Random& random, Runtime& runtime, const Options& options) : random_(random), runtime_(runtime), options_(options) {
    for (std::uint32_t i = 0; i < 3; ++i) jobs_.push_back(random_jobs(random, runtime, i ? 5 : 30));
    watch_inbox(jobs_[0].executable);
  }

  void come(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      submit();
      if (random_.one_in(5)) cancel(runs_[random_.below(static_cast<std::uint32_t>(runs_.size()))]);
      if (random_.one_in(8)) runs_[random_.below(static_cast<std::uint32_t>(runs_.size()))].run.done();
    }
  }
  void go() {
    for (Waiting& one : runs_) {
      ledger_.note(one.number, one.run.status());
      if (!one.never) continue;
      expect(one.run.status() == Status::cancelled, "a run that was cancelled in the backlog ended otherwise");
      expect(!journal::let_in_at(one.number), "a run that was cancelled in the backlog left it nevertheless");
    }
    owe(options_, journal::size(), runs_.size());
    check_end(runtime_, jobs_[0].executable);
    ledger_.check();
  }

 private:
  void submit() {
    const Jobs& jobs = jobs_[random_.below(3)];
    const std::uint32_t passes = 1 + (random_.one_in(4) ? random_.below(3) : 0), number = ledger_.open(jobs, passes);
    const auto level = static_cast<Priority>(random_.below(3));
    runs_.push_back(
        {runtime_.submit(jobs.executable, level, repeat(passes), set(jobs.number, number_of(level, number))), number});
    check_length();
  }
  void cancel(Waiting& one) {
    ledger_.at(one.number).cancelled = true;
    one.run.cancel();
    one.never = one.never || (!journal::let_in_at(one.number) && !ledger_.at(one.number).known);
  }
  /// One may have left the backlog and be on its way.
  void check_length() const {
    std::uint32_t length = 0;
    for (const Waiting& one : runs_) length += !one.never && !journal::let_in_at(one.number);
    expect(length <= options_.max_waiting + 1, "more runs wait in the backlog than Options::max_waiting");
  }

  Random& random_;
  Runtime& runtime_;
  const Options& options_;
  std::vector<Jobs> jobs_;
  std::vector<Waiting> runs_;
  Ledger ledger_;
};

}  // namespace

void run_crowd(Random& random) {
  Options options = options_of(random, 30);
  options.max_tasks = 128;
  options.max_waiting = 1 + random.below(20);
  options.heap_bytes = 1 << 14;
  Runtime runtime = start_runtime(options);
  const std::uint32_t count = 6 + random.below(24);
  describe_program(options, std::to_string(count) + " runs of all kinds");
  const auto crowd = std::make_unique<Crowd>(random, runtime, options);
  crowd->come(count);
  crowd->go();
}

}  // namespace flywheel::simulate
