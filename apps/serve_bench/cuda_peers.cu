// What one would use instead of a resident kernel: a launch a request in a pool of streams, or a CUDA graph a request from a
// pool of instances. A slot serves one request at a time.
#include <algorithm>
#include <array>

#include "apps/serve_bench/cuda_slot.cuh"
#include "apps/serve_bench/window.hpp"

namespace serve {
namespace {

using MakeSlot = std::unique_ptr<Slot> (*)(const Workload&, std::uint64_t*, std::int64_t, int);

/// A GPU runs at most 128 kernels at once (CUDA C++ Programming Guide, technical specifications).
constexpr std::uint32_t kMostKernels = 128;

class CudaSession final : public Session {
 public:
  CudaSession(MakeSlot make, const Workload& workload, std::uint64_t* sum, Window window) : in_flight_(window) {
    const std::int64_t ticks = work_ticks(workload.task_us, true);
    int least = 0, greatest = 0;
    measure::check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    for (const Priority priority : {Priority::normal, Priority::high})
      for (std::uint32_t i = 0; i < window.of(priority); ++i) {
        slots_.push_back(make(workload, sum, ticks, priority == Priority::high ? greatest : least));
        free_of(priority).push_back(slots_.back().get());
      }
  }
  /// Kernels write to the slots: none may be left when those go.
  ~CudaSession() override {
    for (const auto& slot : slots_) measure::report_cuda(cudaStreamSynchronize(slot->stream().get()), "cudaStreamSynchronize");
  }

  bool try_begin(const Request& request) override {
    auto& free = free_of(request.priority);
    if (free.empty()) return false;
    Slot* const slot = free.back();
    free.pop_back();
    slot->begin(request.seed);
    in_flight_.add(request, {slot, request.priority});
    return true;
  }
  void collect(std::vector<Answer>& answers) override {
    const std::size_t before = answers.size();
    in_flight_.take_done(
        answers, [](const Ticket& ticket) { return ticket.slot->done(); },
        [this](const Ticket& ticket) {
          free_of(ticket.priority).push_back(ticket.slot);
          return ticket.slot->value();
        });
    if (answers.size() == before) look_for_errors();
  }

 private:
  struct Ticket {
    Slot* slot;
    Priority priority;
  };

  std::vector<Slot*>& free_of(Priority priority) { return free_[priority == Priority::high]; }

  /// A kernel that has failed writes no answer; any CUDA call reports it. Asked now and then, since it takes a driver's lock.
  void look_for_errors() {
    constexpr std::uint32_t kNowAndThen = 1u << 14;
    if (++idle_polls_ % kNowAndThen != 0) return;
    const cudaError_t status = cudaStreamQuery(slots_.front()->stream().get());
    if (status != cudaErrorNotReady) measure::check_cuda(status, "cudaStreamQuery");
  }

  std::vector<std::unique_ptr<Slot>> slots_;
  std::array<std::vector<Slot*>, 2> free_;
  InFlight<Ticket> in_flight_;
  std::uint32_t idle_polls_ = 0;
};

class CudaService final : public Service {
 public:
  CudaService(const char* name, MakeSlot make, const ServiceOptions& options) : name_(name), sum_(1) {
    sum_.fill(0, stream_);
    stream_.synchronize();
    const Window window(std::min(options.window, kMostKernels), options.clients);
    for (std::uint32_t i = 0; i < options.clients; ++i)
      sessions_.push_back(std::make_unique<CudaSession>(make, options.workload, sum_.get(), window));
  }
  const char* name() const override { return name_; }
  Session& session(std::uint32_t client) override { return *sessions_.at(client); }
  std::uint32_t workers() const override { return 0; }
  std::uint64_t sum() override {
    std::uint64_t sum = 0;
    // All answers have been seen, and each value was added before its answer: see do_task(). No call that waits for the whole
    // device, where the runtime's kernel may be resident.
    measure::check_cuda(cudaMemcpyAsync(&sum, sum_.get(), sizeof sum, cudaMemcpyDeviceToHost, stream_.get()),
                        "cudaMemcpyAsync");
    stream_.synchronize();
    return sum;
  }

 private:
  const char* name_;
  const measure::Stream stream_;
  const measure::DeviceBuffer<std::uint64_t> sum_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace

std::int64_t work_ticks(double task_us, bool on_gpu) {
  const int khz = on_gpu ? measure::device_attribute(cudaDevAttrClockRate) : 1'000'000;
  if (khz <= 0)
    throw std::runtime_error("the driver does not say how fast the SMs are clocked: update it, or see nvidia-smi -q -d CLOCK");
  return static_cast<std::int64_t>(task_us * khz / 1000);
}

std::vector<std::string> peer_names() { return {"launch", "cuda_graph"}; }

std::unique_ptr<Service> start_peer(const std::string& name, const ServiceOptions& options) {
  if (name == "launch") return std::make_unique<CudaService>("launch", make_launch_slot, options);
  return std::make_unique<CudaService>("cuda_graph", make_graph_slot, options);
}

}  // namespace serve
