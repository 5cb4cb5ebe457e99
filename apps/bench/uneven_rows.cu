// Independent tasks of very different length in one graph, beside a list schedule of the same durations without any overhead.
// Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cmath>
#include <random>
#include <stdexcept>

#include "apps/bench/list_schedule.hpp"
#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/work_clock.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

/// What a task has really taken: by the clock of its work, and in ns by the clock that all share.
struct Taken {
  std::int64_t ticks, ns;
};

/// Works for so many ticks: one thread is busy, the others wait for it.
struct Busy {
  const std::int64_t* wanted;
  Taken* taken;
  std::uint32_t task;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      const std::int64_t begin_ns = measure::shared_clock_ns(), begin = measure::work_clock();
      measure::spin_for(wanted[task]);
      taken[task] = {measure::work_clock() - begin, measure::shared_clock_ns() - begin_ns};
    }
    block.sync();
  }
};

/// Durations with this mean, in us, whose logarithms have this standard deviation.
std::vector<double> draw_durations(std::size_t count, double mean, double sigma) {
  std::mt19937_64 bits(1);
  std::lognormal_distribution<double> draw(std::log(mean) - sigma * sigma / 2, sigma);
  std::vector<double> durations(count);
  for (double& duration : durations) duration = draw(bits);
  return durations;
}

class UnevenTasks {
 public:
  UnevenTasks(bool on_gpu, std::uint32_t count, double sigma)
      : rt_(start<Busy>(options_for(on_gpu))),
        durations_(draw_durations(count, 5, sigma)),
        wanted_(rt_.allocate<std::int64_t>(count)),
        taken_(rt_.allocate<Taken>(count)) {
    Graph graph;
    for (std::uint32_t task = 0; task < count; ++task) graph.add(Busy{wanted_.data(), taken_.data(), task});
    executable_ = rt_.load(graph);
    set_ticks(1'000);
    run();  // how fast the clock of the work is, while all workers are busy
    set_ticks(ticks_per_us());
  }

  /// The list schedule's time over that of a run. Its durations are those that the tasks have taken in this run.
  double efficiency() {
    const double spent = run(), rate = ticks_per_us();
    std::vector<double> durations;
    for (const Taken& taken : taken_.read()) durations.push_back(static_cast<double>(taken.ticks) / rate);
    return list_schedule(durations, rt_.workers()) / spent;
  }

 private:
  static Options options_for(bool on_gpu) {
    Options options;
    options.target = on_gpu ? Target::gpu : Target::cpu;
    options.mode = Mode::resident;
    return options;
  }

  void set_ticks(double ticks_per_us) {
    std::vector<std::int64_t> wanted;
    for (const double duration : durations_) wanted.push_back(std::llround(duration * ticks_per_us));
    wanted_.write(wanted);
  }
  double run() {
    const auto begin = std::chrono::steady_clock::now();
    rt_.submit(executable_).wait();
    return measure::microseconds_since(begin);
  }
  /// Of the last run, from all its tasks: the shared clock of a GPU goes on in steps, too coarse for one task.
  double ticks_per_us() const {
    double ticks = 0, us = 0;
    const std::vector<Taken> all = taken_.read();
    for (std::size_t task = 0; task < all.size(); ++task) {
      if (all[task].ticks <= 0) throw std::runtime_error("task " + std::to_string(task) + " has not run");
      ticks += static_cast<double>(all[task].ticks);
      us += static_cast<double>(all[task].ns) / 1'000;
    }
    return ticks / us;
  }

  Runtime rt_;
  const std::vector<double> durations_;
  Buffer<std::int64_t> wanted_;
  Buffer<Taken> taken_;
  Executable executable_;
};

}  // namespace

std::vector<measure::Measurement> uneven_rows(const measure::Effort& effort, bool on_gpu) {
  const auto row = [&](const char* name, double sigma) {
    return measure::Measurement{.name = name,
                                .unit = "efficiency",
                                .round =
                                    [=, samples = effort.samples(50)] {
                                      UnevenTasks tasks(on_gpu, on_gpu ? 20'000 : 2'000, sigma);
                                      Samples all;
                                      tasks.efficiency();  // to warm up
                                      for (int i = 0; i < samples; ++i) all.push_back(tasks.efficiency());
                                      return all;
                                    },
                                .needs_gpu = false};
  };
  return {row("grain.uneven.sigma_0.5", 0.5), row("grain.uneven.sigma_1.0", 1.0)};
}

}  // namespace bench
