#include "apps/serve_bench/service.hpp"

#include <cstdio>
#include <stdexcept>

namespace serve {

std::string Workload::name() const {
  char text[32];
  const char* kinds[] = {"task", "batch", "graph"};
  std::snprintf(text, sizeof text, "%s.%gus", kinds[static_cast<int>(kind)], task_us);
  return text;
}

std::uint64_t sum_of(const Workload& workload, std::uint64_t seed) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < workload.tasks(); ++i) sum += stir(word_of(seed, i));
  return sum;
}

std::uint64_t answer_of(const Workload& workload, std::uint64_t seed) {
  return workload.kind == Kind::graph ? stir(word_of(seed, kGraphTasks - 1)) : sum_of(workload, seed);
}

std::vector<std::string> service_names(bool on_gpu) {
  std::vector<std::string> names{"flywheel"};
  if (on_gpu)
    for (const std::string& peer : peer_names()) names.push_back(peer);
  return names;
}

std::unique_ptr<Service> start_service(const std::string& name, const ServiceOptions& options) {
  if (name == "flywheel") return start_flywheel(options);
  for (const std::string& peer : peer_names())
    if (name == peer && options.on_gpu) return start_peer(name, options);
  throw std::invalid_argument("there is no service '" + name + "' here: a peer needs a CUDA build and a GPU; see --services");
}

}  // namespace serve
