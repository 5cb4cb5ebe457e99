#include "apps/bfs/reference.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "apps/bfs/graph.hpp"
#include "apps/bfs/words.hpp"

namespace bfs {
namespace {

std::string shown(std::uint32_t distance) { return distance == kNone ? "not reached" : "distance " + std::to_string(distance); }

}  // namespace

std::vector<std::uint32_t> plain_bfs(const HostGraph& graph, std::uint32_t root) {
  std::vector<std::uint32_t> distances(graph.vertices(), kNone), queue{root};
  distances[root] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t vertex = queue[next];
    for (std::uint32_t e = graph.offsets[vertex]; e < graph.offsets[vertex + 1]; ++e) {
      const std::uint32_t target = graph.targets[e];
      if (distances[target] != kNone) continue;
      distances[target] = distances[vertex] + 1;
      queue.push_back(target);
    }
  }
  return distances;
}

std::vector<std::uint32_t> plain_shortest(const HostGraph& graph, std::uint32_t root) {
  std::vector<std::uint32_t> distances(graph.vertices(), kNone);
  std::array<std::vector<std::uint32_t>, 256> buckets;
  std::size_t waiting = 1;
  distances[root] = 0;
  buckets[0].push_back(root);
  for (std::uint32_t now = 0; waiting; ++now) {
    std::vector<std::uint32_t> due;
    due.swap(buckets[now % 256]);  // no weight is 0, so none comes to this bucket meanwhile
    waiting -= due.size();
    for (const std::uint32_t vertex : due) {
      if (distances[vertex] != now) continue;
      for (std::uint32_t e = graph.offsets[vertex]; e < graph.offsets[vertex + 1]; ++e) {
        const std::uint32_t target = graph.targets[e], distance = now + graph.weights[e];
        if (distance >= distances[target]) continue;
        distances[target] = distance;
        buckets[distance % 256].push_back(target);
        ++waiting;
      }
    }
  }
  return distances;
}

void check_distances(const std::vector<std::uint32_t>& expected, const std::vector<std::uint32_t>& found) {
  if (expected.size() != found.size()) throw std::runtime_error("a search has left distances of another number of vertices");
  const auto differ = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (differ.first == expected.end()) return;
  throw std::runtime_error("vertex " + std::to_string(differ.first - expected.begin()) + ": " + shown(*differ.second) +
                           ", but " + shown(*differ.first) +
                           " by a plain search on the host. Look for a missing barrier, or for memory errors of the GPU "
                           "(nvidia-smi -q -d ECC)");
}

std::uint64_t traversed_edges(const HostGraph& graph, const std::vector<std::uint32_t>& distances) {
  std::uint64_t sum = 0;
  for (std::uint32_t v = 0; v < graph.vertices(); ++v) sum += distances[v] == kNone ? 0 : graph.degree(v);
  return sum / 2;
}

std::uint32_t deepest(const std::vector<std::uint32_t>& distances) {
  std::uint32_t deepest = 0;
  for (const std::uint32_t distance : distances) deepest = distance == kNone ? deepest : std::max(deepest, distance);
  return deepest;
}

std::vector<std::uint32_t> some_roots(const HostGraph& graph, std::uint32_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> roots;
  for (std::uint64_t tried = 0; roots.size() < count && tried < 1000; ++tried) {
    const auto vertex = static_cast<std::uint32_t>(mixed((std::uint64_t{seed} << 32) + tried + 1) % graph.vertices());
    if (graph.degree(vertex) && std::ranges::find(roots, vertex) == roots.end()) roots.push_back(vertex);
  }
  return roots;
}

}  // namespace bfs
