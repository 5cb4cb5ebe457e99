// The sustainable load of a service, by measurement: the largest offered load whose backlog does not grow.
//
// A closed loop says what the service can do at most. Between parts of that the load is bisected with short trials of the open
// loop. A trial is sustained if the requests that have arrived and are not answered are about as many at the end as after half
// the time; a load is, if one of two trials is.
#pragma once

#include <functional>

#include "apps/serve_bench/trial.hpp"

namespace serve {

struct Sustainable {
  double per_second = 0;         // requests
  double closed_per_second = 0;  // of the closed loop
};

/// Runs a trial of this load.
using TryLoad = std::function<Trial(const Load&)>;

/// `seconds`: of each trial. Throws std::runtime_error if the service keeps up with no load, or loses requests.
Sustainable find_sustainable(const TryLoad& try_load, double seconds, double high_share);

}  // namespace serve
