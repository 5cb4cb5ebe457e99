// The peers of a host-only build: none. The files cuda_*.cu take its place where there is CUDA.
#include <stdexcept>

#include "apps/taskbench/system.hpp"

namespace taskbench {

std::vector<std::string> peer_names() { return {}; }

std::string why_not(const std::string& peer, const Problem&) {
  return "'" + peer + "' needs CUDA, and this build is host-only: configure with -DFLYWHEEL_CUDA=ON";
}

std::unique_ptr<System> make_peer(const std::string& name, const Problem& problem) {
  throw std::invalid_argument(why_not(name, problem));
}

}  // namespace taskbench
