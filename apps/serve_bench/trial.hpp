// A trial: all clients offer one load to a service for some seconds.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/serve_bench/client.hpp"

namespace serve {

/// Resident memory of this process in MiB, as /proc/self/statm has it.
struct Memory {
  double before = 0;
  double most = 0;  // looked at every 10 ms
  double after = 0;
};

struct Trial {
  Outcome high, normal;
  double seconds = 0;  // of arrivals
  Memory memory;

  std::uint64_t arrived() const { return high.arrived + normal.arrived; }
  std::uint64_t lost() const { return high.lost + normal.lost; }
  std::uint64_t wrong() const { return high.wrong + normal.wrong; }
  std::uint64_t sum() const { return high.sum + normal.sum; }
  /// Requests answered in a second, in the second half of the arrivals: until the queues are as long as they get.
  double answered_per_second() const;
  /// Requests that had arrived and were not answered, after half the time and at the end of the arrivals.
  double backlog_at_half() const;
  double backlog_at_end() const;
  /// Whether the service keeps up with the arrivals, see sustainable.hpp.
  bool is_sustained() const;
};

/// `busy_cores`: beside the service, one thread for each hardware thread computes without a pause. Throws what a session
/// throws.
Trial run_trial(Service& service, const Workload& workload, const Load& load, std::uint32_t clients, bool busy_cores = false);

}  // namespace serve
