#include "apps/llama/bench/peers.hpp"

#include <bit>
#include <chrono>
#include <stdexcept>
#include <typeindex>

#include "apps/llama/bench/op_kernel.cuh"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/graph.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace llama {
namespace {

using measure::check_cuda;
using measure::Stream;

/// The kernels of one task type.
struct OpKind {
  std::type_index type;
  const void* run;
  const void* pack;  // null for a type without operands
};

template <class Task, int kBlocksOfSm>
OpKind kind_of() {
  const void* pack = nullptr;
  if constexpr (requires(const Task& task) { task.operand_bytes(); }) pack = reinterpret_cast<const void*>(&pack_op<Task>);
  return {typeid(Task), reinterpret_cast<const void*>(&run_op<Task, kBlocksOfSm>), pack};
}

template <int kBlocksOfSm, class... Tasks>
const OpKind& find_among(std::type_index type) {
  static const OpKind all[] = {kind_of<Tasks, kBlocksOfSm>()...};
  for (const OpKind& kind : all)
    if (kind.type == type) return kind;
  throw std::logic_error("the peers know no kernel for " + flywheel::detail::type_name(type) + ": add its type to find_kind()");
}

template <int kBlocksOfSm>
const OpKind& find_kind(std::type_index type) {
  return find_among<kBlocksOfSm, TunedEmbed, TunedProject, TunedProjectBiased, TunedAttend, TunedAttendWindow, TunedGateUp,
                    TunedResidual, TunedLogits, TunedChoose>(type);
}
const OpKind& find_kind(std::type_index type, int blocks_per_sm) {
  if (blocks_per_sm == 1) return find_kind<1>(type);
  if (blocks_per_sm == 2) return find_kind<2>(type);
  return find_kind<3>(type);  // see check_shape()
}

/// One launch of a step.
struct Op {
  const OpKind* kind;
  unsigned blocks;
  OpStage stage;
};

/// A step captured from a stream.
class CapturedGraph {
 public:
  template <class Launch>
  CapturedGraph(const Stream& stream, Launch&& launch) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    launch();
    check_cuda(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(made, "cudaGraphInstantiate");
    check_cuda(cudaGraphUpload(exec_, stream.get()), "cudaGraphUpload");
    stream.synchronize();
  }
  ~CapturedGraph() { measure::report_cuda(cudaGraphExecDestroy(exec_), "cudaGraphExecDestroy"); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void launch(const Stream& stream) const { check_cuda(cudaGraphLaunch(exec_, stream.get()), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

/// The tasks of a graph as operations find them in device memory.
struct OpTasks {
  OpTasks(Runtime& runtime, const Graph& graph) {
    std::vector<unsigned char> args;
    std::vector<OpOperandRange> all;
    for (const flywheel::detail::GraphNode& node : graph.nodes()) {
      args.insert(args.end(), node.args.begin(), node.args.end());
      args.resize((all.size() + 1) * kTaskArgBytes);
      all.push_back({bytes, node.operand_bytes, 0});
      bytes += (node.operand_bytes + 127) / 128 * 128;
    }
    tasks = runtime.upload(args);
    ranges = runtime.upload(all);
    operands = runtime.allocate<unsigned char>(bytes + 128);
  }
  Op op(const Graph& graph, std::uint32_t first, std::size_t count, int blocks_per_sm, const OpRun& run) const {
    return {&find_kind(graph.nodes()[first].type, blocks_per_sm),
            static_cast<unsigned>(count),
            {tasks.data() + std::size_t{first} * kTaskArgBytes, ranges.data() + first, operands.data(), run, false}};
  }

  Buffer<unsigned char> tasks, operands;
  Buffer<OpOperandRange> ranges;
  std::uint64_t bytes = 0;
};

class CudaPeers : public Peers {
 public:
  CudaPeers(Runtime& runtime, const Config& config, const StreamedWeights& weights, int context, int sequences,
            const PeerShape& shape)
      : runtime_(runtime),
        memory_(runtime, config, context, sequences),
        graph_(build_tuned_graph(shape.blocks_per_sm * measure::sm_count(), config, weights, memory_)),
        step_tasks_(runtime, graph_.decode),
        embed_tasks_(runtime, graph_.embed),
        written_(runtime.allocate<std::uint64_t>(1)),
        failed_(runtime.allocate<std::uint32_t>(1)),
        ended_(runtime.allocate<std::uint32_t>(1)) {
    const OpRun run{written_.data(),
                    failed_.data(),
                    ended_.data(),
                    static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned>(sequences))),
                    tuned_scratch_bytes(config, true, context, sequences),
                    static_cast<std::uint32_t>(shape.pages_ahead)};
    for (const StageTasks& stage : graph_.stages)
      step_.push_back(step_tasks_.op(graph_.decode, stage.tasks.front(), stage.tasks.size(), shape.blocks_per_sm, run));
    step_.back().stage.ends_step = true;
    embed_ = embed_tasks_.op(graph_.embed, 0, graph_.embed.size(), shape.blocks_per_sm, run);
    shared_bytes_ = kOpHandoffBytes + run.scratch_bytes;
    leave_gpu_to_us();
    for (const Op& op : step_) prepare(op);
    prepare(embed_);
    stream_.synchronize();
    graph_of_step_ = std::make_unique<CapturedGraph>(stream_, [this] { launch_step(false); });
    graph_with_pdl_ = std::make_unique<CapturedGraph>(stream_, [this] { launch_step(true); });
  }

  void fill_cache(std::uint64_t seed) override { llama::fill_cache(runtime_, memory_, seed); }
  std::vector<float> last_logits() override { return memory_.logits.read(); }

  double run(PeerWay way, std::uint32_t start, std::uint32_t tokens) override {
    if (std::uint64_t{start} + tokens > static_cast<std::uint64_t>(memory_.context))
      throw std::invalid_argument("the peers have no room for these positions: make them with a larger context");
    leave_gpu_to_us();
    memory_.states.write(std::vector<StepState>(static_cast<std::size_t>(memory_.sequences), StepState{start, 0}));
    launch(embed_, false);
    stream_.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t token = 0; token < tokens; ++token) step(way);
    stream_.synchronize();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    check_failures();
    return time.count() / tokens;
  }

 private:
  /// The kernel leaves a moment after it was told to.
  void leave_gpu_to_us() const {
    wait_until_idle(runtime_);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  void prepare(const Op& op) const {
    check_cuda(cudaFuncSetAttribute(op.kind->run, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes_)),
               "cudaFuncSetAttribute", "Ask for fewer texts at once: their inputs do not fit a block's shared memory");
    // One setting for all: to change it between two operations, an SM would have to run empty.
    check_cuda(
        cudaFuncSetAttribute(op.kind->run, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
        "cudaFuncSetAttribute");
    if (!op.kind->pack) return;
    const unsigned char* tasks = op.stage.tasks;
    const OpOperandRange* ranges = op.stage.ranges;
    unsigned char* operands = step_tasks_.operands.data();
    void* arguments[] = {&tasks, &ranges, &operands};
    check_cuda(cudaLaunchKernel(op.kind->pack, dim3(op.blocks), dim3(kOpComputeThreads), arguments, 0, stream_.get()),
               "cudaLaunchKernel");
  }

  void launch(const Op& op, bool overlaps) const {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(op.blocks);
    config.blockDim = dim3(kOpThreads);
    config.dynamicSmemBytes = shared_bytes_;
    config.stream = stream_.get();
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
    OpStage stage = op.stage;
    void* arguments[] = {&stage};
    check_cuda(cudaLaunchKernelExC(&config, op.kind->run, arguments), "cudaLaunchKernelExC",
               "The kernel may not be built for this GPU: add its architecture to FLYWHEEL_CUDA_ARCHITECTURES");
  }

  void launch_step(bool overlapping) const {
    for (const Op& op : step_) launch(op, overlapping && &op != &step_.front());
  }

  void step(PeerWay way) const {
    if (way == PeerWay::stream) launch_step(false);
    else if (way == PeerWay::graph) graph_of_step_->launch(stream_);
    else graph_with_pdl_->launch(stream_);
  }

  void check_failures() const {
    const std::uint32_t code = failed_.read()[0];
    if (code)
      throw std::runtime_error("an operation of the peers failed with code " + std::to_string(code) +
                               ": 1 says that logits are not finite, 4294967295 that scratch memory is too small");
  }

  Runtime& runtime_;
  TunedMemory memory_;
  TunedGraph graph_;
  OpTasks step_tasks_, embed_tasks_;
  Buffer<std::uint64_t> written_;
  Buffer<std::uint32_t> failed_, ended_;
  std::vector<Op> step_;
  Op embed_{};
  std::size_t shared_bytes_ = 0;
  Stream stream_;
  std::unique_ptr<CapturedGraph> graph_of_step_, graph_with_pdl_;
};

}  // namespace

std::unique_ptr<Peers> Peers::make(Runtime& runtime, const Config& config, const StreamedWeights& weights, int context,
                                   int sequences, const PeerShape& shape) {
  check_shape(shape);
  if (!runtime.on_gpu()) return nullptr;
  return std::make_unique<CudaPeers>(runtime, config, weights, context, sequences, shape);
}

}  // namespace llama
