// The rows of a host-only build that need a GPU: none.
#include "apps/bench/runtime_rows.hpp"

namespace bench {

std::vector<measure::Measurement> cg_rows(const measure::Effort&) { return {}; }
std::vector<measure::Measurement> gemm_rows(const measure::Effort&) { return {}; }
std::vector<measure::Measurement> stream_rows(const measure::Effort&) { return {}; }
std::vector<measure::Measurement> queue_rows(const measure::Effort&) { return {}; }
std::vector<measure::Measurement> phase_rows(const measure::Effort&) { return {}; }
std::vector<measure::Measurement> yield_rows(const measure::Effort&) { return {}; }

}  // namespace bench
