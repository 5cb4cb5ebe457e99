// The peers by name, and what all of them do around their kernels.
#include <chrono>
#include <stdexcept>

#include "apps/measure/stats.hpp"
#include "apps/taskbench/cuda_point.cuh"

namespace taskbench {
namespace {

using measure::check_cuda;

// What makes a graph of nodes or a schedule of streams take minutes to build, or more streams than there are hardware queues.
constexpr std::uint64_t kMostNodes = 200'000, kMostEdges = 600'000, kMostStreams = 32;

std::string too_many(std::uint64_t count, const char* what, std::uint64_t most, const char* remedy) {
  if (count <= most) return {};
  return "it would need " + std::to_string(count) + " " + what + " and takes " + std::to_string(most) + " at most: " + remedy;
}

std::uint64_t edges_of(const Problem& problem) {
  std::uint64_t count = 0;
  for (const Shape& shape : problem.graphs) count += count_edges(shape);
  return count;
}

template <class T>
void copy_to_host(T* to, const T* from, std::size_t count, const measure::Stream& stream) {
  check_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
  stream.synchronize();
}

}  // namespace

void launch_kernel(const measure::Stream& stream, const void* kernel, std::uint32_t blocks, void** arguments,
                   std::span<cudaLaunchAttribute> attributes) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kPeerThreads);
  config.stream = stream.get();
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  check_cuda(cudaLaunchKernelExC(&config, kernel, arguments), "cudaLaunchKernelExC",
             "The kernel may not be built for this GPU: see FLYWHEEL_CUDA_ARCHITECTURES");
}

PeerSystem::PeerSystem(const Problem& problem) : problem_(problem), settings_(1), faults_(1) {
  faults_.fill(0, stream_);
  for (std::uint32_t graph = 0; graph < problem.graphs.size(); ++graph) {
    const Memory& memory = memory_.emplace_back(problem);
    memory.cells.fill(0, stream_);
    memory.scratch.fill(0, stream_);
    GraphData& data = all_.graphs[graph] = data_of(problem, graph);
    data.cells = memory.cells.get();
    data.scratch = memory.scratch.get();
    data.faults = faults_.get();
  }
  all_.count = static_cast<std::uint32_t>(problem.graphs.size());
  stream_.synchronize();
}

double PeerSystem::run(const RunSettings& settings) {
  check_cuda(cudaMemcpyAsync(settings_.get(), &settings, sizeof settings, cudaMemcpyHostToDevice, stream_.get()),
             "cudaMemcpyAsync");
  prepare();
  stream_.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  launch();
  stream_.synchronize();
  return measure::microseconds_since(begin);
}

std::vector<Cell> PeerSystem::cells(std::uint32_t graph) {
  std::vector<Cell> cells(std::size_t{problem_.width()} * problem_.steps());
  copy_to_host(cells.data(), memory_.at(graph).cells.get(), cells.size(), stream_);
  return cells;
}

Faults PeerSystem::faults() {
  Faults faults{};
  copy_to_host(&faults, faults_.get(), 1, stream_);
  return faults;
}

std::vector<std::string> peer_names() { return {"levels", "levels_pdl", "nodes", "cooperative", "counter", "streams"}; }

std::string why_not(const std::string& peer, const Problem& problem) {
  const char* smaller = "fewer --steps or smaller --widths do";
  if (peer == "levels_pdl" && measure::device_attribute(cudaDevAttrComputeCapabilityMajor) < 9)
    return "programmatic dependent launch needs compute capability 9.0: take a newer GPU";
  if (peer == "streams") return too_many(problem.graphs.size() * problem.width(), "streams", kMostStreams, smaller);
  if (peer != "nodes") return {};
  const std::string nodes = too_many(problem.tasks(), "nodes", kMostNodes, smaller);
  return nodes.empty() ? too_many(edges_of(problem), "dependencies", kMostEdges, smaller) : nodes;
}

std::unique_ptr<System> make_peer(const std::string& name, const Problem& problem) {
  if (const std::string reason = why_not(name, problem); !reason.empty()) throw std::invalid_argument(name + ": " + reason);
  if (name == "levels") return make_levels(problem, false);
  if (name == "levels_pdl") return make_levels(problem, true);
  if (name == "nodes") return make_nodes(problem);
  if (name == "cooperative") return make_cooperative(problem);
  if (name == "counter") return make_counter(problem);
  if (name == "streams") return make_streams(problem);
  throw std::invalid_argument("there is no peer '" + name + "': see --systems");
}

}  // namespace taskbench
