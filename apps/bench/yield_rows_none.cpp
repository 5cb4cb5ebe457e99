// The rows of a host-only build: CPU workers hold no device that others wait for.
#include "apps/bench/runtime_rows.hpp"

namespace bench {

std::vector<measure::Measurement> yield_rows(const measure::Effort&) { return {}; }

}  // namespace bench
