// One thread that sends requests at times fixed ahead, takes the answers and checks each of them.
//
// Latency counts from the time at which a request was to arrive, not from the time at which the client came to send it, so a
// service that stalls is charged for all that waited meanwhile. Tene calls the failure to do so "coordinated omission" ("How
// NOT to Measure Latency", 2013); Schroeder, Wierman and Harchol-Balter show what it hides ("Open Versus Closed: A Cautionary
// Tale", NSDI 2006). Requests that the service has no room for wait in the schedule, which takes no memory however many.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "apps/serve_bench/arrivals.hpp"
#include "apps/serve_bench/histogram.hpp"
#include "apps/serve_bench/service.hpp"

namespace serve {

/// What all clients together offer.
struct Load {
  double per_second = 0;      // requests of both priorities
  double high_share = 0.1;    // of the requests
  double seconds = 1;         // of arrivals; what is in flight then is still awaited
  bool closed = false;        // a closed loop: a request arrives whenever there is room for one
  double drain_seconds = 30;  // after the last arrival; what is not answered by then is lost
  std::uint64_t seed = 1;
};

/// What a client has seen of the requests of one priority.
struct Outcome {
  LogHistogram latency;       // of those that arrived after the first tenth of the time
  std::uint64_t arrived = 0;  // all of them; after a drain that took too long: those that were begun
  std::uint64_t arrived_by_half = 0;
  std::uint64_t answered = 0;
  std::uint64_t answered_by_half = 0;  // of the time of arrivals
  std::uint64_t answered_by_end = 0;
  std::uint64_t wrong = 0;
  std::uint64_t lost = 0;
  std::uint64_t sum = 0;  // of the values of all tasks that were begun

  void merge(const Outcome& other);
};

class Client {
 public:
  using Clock = std::chrono::steady_clock;

  /// Client `self` of `clients`. `workload` says what is a right answer.
  Client(Session& session, const Workload& workload, const Load& load, std::uint32_t self, std::uint32_t clients);
  /// Sends all requests and waits for their answers. Throws what the session throws.
  void run(Clock::time_point begin);

  const Outcome& high() const { return lines_[0].outcome; }
  const Outcome& normal() const { return lines_[1].outcome; }

 private:
  /// The requests of one priority: each has its own arrivals, so that none waits behind those of the other.
  struct Line {
    Priority priority;
    PoissonArrivals arrivals;
    Outcome outcome;
  };

  bool begin_due(Line& line, std::int64_t now);
  bool arrives(const Line& line, std::int64_t now) const;
  bool collect();
  void take(const Answer& answer, std::int64_t now);
  bool is_over(std::int64_t now) const;
  void count_lost();
  std::int64_t now() const;

  Session& session_;
  const Workload workload_;
  const Load load_;
  const std::int64_t end_ns_;
  std::uint64_t next_seed_;
  std::array<Line, 2> lines_;
  std::vector<Answer> answers_;
  Clock::time_point begin_;
};

}  // namespace serve
