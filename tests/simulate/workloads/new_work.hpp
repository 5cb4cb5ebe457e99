// Tasks without a graph that one thread of a program has submitted, and what is to become of them.
#pragma once

#include <deque>

#include "simulate/workloads/jobs.hpp"

namespace flywheel::simulate {

class NewWork {
 public:
  NewWork(Runtime& runtime, Ledger& ledger, Random& random) : runtime_(runtime), ledger_(ledger), random_(random) {}

  void submit_single(const Followed& before);
  void submit_range(const Followed& before);
  /// Adds one of them, if there is one.
  void add_one(Followed& before) const;
  /// Waits for one, if there is one, and checks its results.
  void end_one();
  void look();  // at some, and may cancel them
  void drop();
  bool held() const { return !singles_.empty() || !batches_.empty(); }

 private:
  template <class Handle>
  struct Submitted {
    Handle handle;
    std::vector<Lone> tasks;
    std::uint32_t number;
  };
  static void check(Future<std::uint64_t>& future, const std::vector<Lone>& tasks);
  static void check(Batch<std::uint64_t>& batch, const std::vector<Lone>& tasks);
  template <class One>
  void look_at(std::deque<One>& all);
  template <class One>
  void end(std::deque<One>& all);

  Runtime& runtime_;
  Ledger& ledger_;
  Random& random_;
  std::deque<Submitted<Future<std::uint64_t>>> singles_;
  std::deque<Submitted<Batch<std::uint64_t>>> batches_;
};

}  // namespace flywheel::simulate
