// What the peers share: a block as a point's code sees it, the memory of a problem, and a run from the host's side.
#pragma once

#include <array>
#include <span>

#include "apps/measure/cuda_objects.hpp"
#include "apps/taskbench/system.hpp"

namespace taskbench {

inline constexpr int kPeerThreads = 256;  // a block as wide as a task's
inline constexpr std::size_t kMostGraphs = 4;

/// A block of a plain kernel, with what run_point() asks of a block of the runtime.
struct PeerBlock {
  static constexpr int kLanes = 32;
  __device__ bool leader() const { return threadIdx.x == 0; }
  __device__ int lane() const { return static_cast<int>(threadIdx.x % kLanes); }
  template <class T>
  __device__ static T shuffle(T value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
  }
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kPeerThreads) f(i);
  }
};

/// The argument of a kernel that runs all graphs.
struct AllGraphs {
  GraphData graphs[kMostGraphs];
  std::uint32_t count;
};

/// A launch of a kernel of kPeerThreads threads a block, with one attribute or none.
void launch_kernel(const measure::Stream& stream, const void* kernel, std::uint32_t blocks, void** arguments,
                   std::span<cudaLaunchAttribute> attributes = {});

class PeerSystem : public System {
 public:
  explicit PeerSystem(const Problem& problem);
  /// No kernel may be left when the memory goes.
  ~PeerSystem() override { measure::report_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"); }

  double run(const RunSettings& settings) final;
  std::vector<Cell> cells(std::uint32_t graph) final;
  Faults faults() final;

 protected:
  /// Submits all points; what is submitted to stream() last ends last.
  virtual void launch() = 0;
  /// Before the clock runs.
  virtual void prepare() {}

  const Problem& problem() const { return problem_; }
  const AllGraphs& all() const { return all_; }
  const measure::Stream& stream() const { return stream_; }
  /// In device memory, since the arguments in a CUDA graph stay as they are.
  const RunSettings* settings() const { return settings_.get(); }

 private:
  struct Memory {
    explicit Memory(const Problem& problem)
        : cells(std::size_t{problem.width()} * problem.steps()),
          scratch(std::size_t{problem.width()} * 2 * problem.pieces() * kPieceChunks) {}
    measure::DeviceBuffer<Cell> cells;
    measure::DeviceBuffer<Chunk> scratch;
  };

  const Problem problem_;
  const measure::Stream stream_;
  const measure::DeviceBuffer<RunSettings> settings_;
  const measure::DeviceBuffer<Faults> faults_;
  std::vector<Memory> memory_;  // of each graph
  AllGraphs all_{};
};

// cuda_levels.cu and cuda_persistent.cu.
std::unique_ptr<System> make_levels(const Problem& problem, bool early);
std::unique_ptr<System> make_nodes(const Problem& problem);
std::unique_ptr<System> make_streams(const Problem& problem);
std::unique_ptr<System> make_cooperative(const Problem& problem);
std::unique_ptr<System> make_counter(const Problem& problem);

}  // namespace taskbench
