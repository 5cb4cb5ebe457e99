// The peers of a host-only build: none. cuda_peers.cu takes its place where there is CUDA.
#include <stdexcept>

#include "apps/serve_bench/service.hpp"
#include "apps/serve_bench/work.hpp"

namespace serve {

std::int64_t work_ticks(double task_us, bool) { return static_cast<std::int64_t>(1000 * task_us); }

std::vector<std::string> peer_names() { return {}; }

std::unique_ptr<Service> start_peer(const std::string& name, const ServiceOptions&) {
  throw std::invalid_argument("'" + name + "' needs CUDA, and this build is host-only: configure with -DFLYWHEEL_CUDA=ON");
}

}  // namespace serve
