// A service without a runtime, for tests of the clients: it answers one request after another, each after a fixed time, and
// does wrong on demand.
#pragma once

#include <chrono>
#include <deque>

#include "apps/serve_bench/service.hpp"

namespace serve {

struct FakeFaults {
  std::uint64_t lose_every = 0;   // the nth request, counted from 1, is never answered
  std::uint64_t wrong_every = 0;  // is answered wrongly
  bool wrong_sum = false;
  std::int64_t stall_from_ns = -1, stall_ns = 0;  // nothing is answered during this time after the first request
};

class FakeSession final : public Session {
 public:
  using Clock = std::chrono::steady_clock;
  FakeSession(const Workload& workload, std::int64_t service_ns, std::size_t room, FakeFaults faults)
      : workload_(workload),
        service_ns_(service_ns),
        room_(room),
        faults_(faults) {}

  bool try_begin(const Request& request) override {
    if (queue_.size() >= room_) return false;
    if (count_ == 0) first_ = Clock::now();
    most_ = std::max(most_, queue_.size() + 1);
    sum_ += sum_of(workload_, request.seed);
    if (!every(faults_.lose_every, ++count_)) queue_.push_back(request);
    return true;
  }
  /// One request at a time: the next is through `service_ns` after the last, also while the client is away.
  void collect(std::vector<Answer>& answers) override {
    if (count_ == 0) return;
    const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - first_).count();
    if (faults_.stall_from_ns >= 0 && now >= faults_.stall_from_ns && now < faults_.stall_from_ns + faults_.stall_ns) return;
    if (queue_.empty()) {
      free_at_ = now + service_ns_;
    } else if (now >= free_at_) {
      const Request request = queue_.front();
      queue_.pop_front();
      free_at_ = std::max(free_at_ + service_ns_, now - static_cast<std::int64_t>(room_) * service_ns_);
      answers.push_back({request, answer_of(workload_, request.seed) + every(faults_.wrong_every, ++answered_)});
    }
  }
  /// The most requests that were in flight.
  std::size_t most() const { return most_; }
  std::uint64_t sum() const { return sum_; }

 private:
  static bool every(std::uint64_t n, std::uint64_t count) { return n && count % n == 0; }

  const Workload workload_;
  const std::int64_t service_ns_;
  const std::size_t room_;
  const FakeFaults faults_;
  std::deque<Request> queue_;
  Clock::time_point first_{};
  std::int64_t free_at_ = 0;
  std::uint64_t count_ = 0, answered_ = 0, sum_ = 0;
  std::size_t most_ = 0;
};

class FakeService final : public Service {
 public:
  FakeService(std::int64_t service_ns, std::size_t room, FakeFaults faults = {})
      : session_({}, service_ns, room, faults),
        wrong_sum_(faults.wrong_sum) {}
  const char* name() const override { return "fake"; }
  FakeSession& session(std::uint32_t) override { return session_; }
  std::uint64_t sum() override { return session_.sum() + wrong_sum_; }
  std::uint32_t workers() const override { return 1; }

 private:
  FakeSession session_;
  const bool wrong_sum_;
};

}  // namespace serve
