#include "apps/bench/cg/library_cg.hpp"

#include <exception>

namespace bench {

namespace {

__global__ void begin_solve(CgScalars* scalars, double bound) {
  scalars->enough = bound * bound * scalars->rr;
  scalars->iterations = 0;
}
__global__ void find_alpha(CgScalars* scalars) {
  scalars->alpha = scalars->rr_before / scalars->p_a_p;
  scalars->minus_alpha = -scalars->alpha;
}
/// Ends an iteration, which has rr from rr_before, and says whether there is another.
__global__ void end_iteration(CgScalars* scalars, cudaGraphConditionalHandle loop, bool in_loop) {
  if (scalars->rr_before > scalars->enough) ++scalars->iterations;  // chunks go on behind the end
  scalars->beta = scalars->rr / scalars->rr_before;
  const bool goes_on = scalars->rr > scalars->enough && scalars->iterations < scalars->most;
  if (in_loop) cudaGraphSetConditional(loop, goes_on);
}
__global__ void remember_sum(CgScalars* scalars) { scalars->rr_before = scalars->rr; }

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

/// Adds a node whose graph runs again while the handle's value is not 0. CUDA 13 asks for data of edges as well.
template <class Parameters>
cudaGraph_t add_loop(cudaGraph_t graph, cudaGraphNode_t before, Parameters parameters) {
  cudaGraphNode_t node = nullptr;
  if constexpr (requires { cudaGraphAddNode(&node, graph, &before, nullptr, 1, &parameters); })
    measure::check_cuda(cudaGraphAddNode(&node, graph, &before, nullptr, 1, &parameters), "cudaGraphAddNode");
  else measure::check_cuda(cudaGraphAddNode(&node, graph, &before, 1, &parameters), "cudaGraphAddNode");
  return parameters.conditional.phGraph_out[0];
}

}  // namespace

LibraryCg::LibraryCg(const std::shared_ptr<const SolverFunctions>& functions, const sparse::Matrix& a, double bound,
                     std::uint32_t most)
    : rows_(a.rows()),
      bound_(bound),
      offsets_(a.offsets.size()),
      columns_(a.columns.size()),
      values_(a.values.size()),
      b_(rows_),
      x_(rows_),
      r_(rows_),
      p_(rows_),
      s_(rows_),
      scalars_(1),
      workspace_(kWorkspaceBytes),
      calls_(functions, stream_.get()) {
  copy(offsets_.get(), a.offsets.data(), offsets_.bytes());
  copy(columns_.get(), a.columns.data(), columns_.bytes());
  copy(values_.get(), a.values.data(), values_.bytes());
  CgScalars scalars;
  scalars.most = most;
  copy(scalars_.get(), &scalars, sizeof scalars);
  set(std::vector<double>(rows_, 1));
  calls_.set_workspace(workspace_.get(), kWorkspaceBytes);
  const DeviceCsr there{offsets_.get(), columns_.get(), values_.get(), rows_, static_cast<std::uint32_t>(a.values.size())};
  product_memory_.emplace(calls_.set_product(there, p_.get(), s_.get(), &scalars_.get()->zero) + 1);
  calls_.prepare_product(product_memory_->get());
  first_calls();  // not captured: libraries load their kernels
  iteration_calls({}, false);
  stream_.synchronize();
  try {
    make_loop();
  } catch (const std::exception& error) {
    why_not_ = error.what();
    static_cast<void>(cudaGetLastError());  // the next call is not to report it again
    make_chunks();
  }
}

void LibraryCg::first_calls() {
  double* const rr = &scalars_.get()->rr;
  const auto to = [&](double* vector) {
    measure::check_cuda(cudaMemcpyAsync(vector, b_.get(), b_.bytes(), cudaMemcpyDeviceToDevice, stream_.get()),
                        "cudaMemcpyAsync");
  };
  to(r_.get());
  to(p_.get());
  x_.fill(0, stream_);
  calls_.dot(r_.get(), r_.get(), rr);
  begin_solve<<<1, 1, 0, stream_.get()>>>(scalars_.get(), bound_);
  measure::check_cuda(cudaGetLastError(), "a launch");
}

void LibraryCg::iteration_calls(cudaGraphConditionalHandle loop, bool in_loop) {
  CgScalars* const scalars = scalars_.get();
  remember_sum<<<1, 1, 0, stream_.get()>>>(scalars);
  calls_.multiply();
  calls_.dot(p_.get(), s_.get(), &scalars->p_a_p);
  find_alpha<<<1, 1, 0, stream_.get()>>>(scalars);
  calls_.add(&scalars->alpha, p_.get(), x_.get());
  calls_.add(&scalars->minus_alpha, s_.get(), r_.get());
  calls_.dot(r_.get(), r_.get(), &scalars->rr);
  end_iteration<<<1, 1, 0, stream_.get()>>>(scalars, loop, in_loop);
  calls_.scale(&scalars->beta, p_.get());
  calls_.add(&scalars->one, r_.get(), p_.get());
  measure::check_cuda(cudaGetLastError(), "a launch");
}

void LibraryCg::capture(cudaGraph_t into, const std::function<void()>& calls) const {
  measure::check_cuda(cudaStreamBeginCaptureToGraph(stream_.get(), into, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed),
                      "cudaStreamBeginCaptureToGraph");
  cudaGraph_t same = nullptr;
  try {
    calls();
  } catch (...) {
    measure::report_cuda(cudaStreamEndCapture(stream_.get(), &same), "cudaStreamEndCapture");
    throw;
  }
  measure::check_cuda(cudaStreamEndCapture(stream_.get(), &same), "cudaStreamEndCapture");
}

void LibraryCg::make_loop() {
  const measure::Graph first, whole;
  capture(first.get(), [&] { first_calls(); });
  cudaGraphNode_t before = nullptr;
  measure::check_cuda(cudaGraphAddChildGraphNode(&before, whole.get(), nullptr, 0, first.get()), "cudaGraphAddChildGraphNode");
  cudaGraphConditionalHandle loop{};
  measure::check_cuda(cudaGraphConditionalHandleCreate(&loop, whole.get(), 1, cudaGraphCondAssignDefault),
                      "cudaGraphConditionalHandleCreate", "It needs a driver of CUDA 12.4 or newer");
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = loop;
  parameters.conditional.type = cudaGraphCondTypeWhile;
  parameters.conditional.size = 1;
  capture(add_loop(whole.get(), before, parameters), [&] { iteration_calls(loop, true); });
  whole_.emplace(whole, stream_);
}

void LibraryCg::make_chunks() {
  const measure::Graph first, chunk;
  capture(first.get(), [&] { first_calls(); });
  capture(chunk.get(), [&] {
    for (std::uint32_t i = 0; i < kChunk; ++i) iteration_calls({}, false);
  });
  first_.emplace(first, stream_);
  chunk_.emplace(chunk, stream_);
}

void LibraryCg::run() const {
  if (whole_) {
    whole_->launch(stream_);
    stream_.synchronize();
    return;
  }
  first_->launch(stream_);
  for (CgScalars now = scalars(); now.rr > now.enough && now.iterations < now.most; now = scalars()) chunk_->launch(stream_);
}

void LibraryCg::set(const std::vector<double>& b) const { copy(b_.get(), b.data(), b_.bytes()); }

std::vector<double> LibraryCg::x() const {
  std::vector<double> found(rows_);
  copy(found.data(), x_.get(), x_.bytes());
  return found;
}
CgScalars LibraryCg::scalars() const {
  CgScalars now{};
  copy(&now, scalars_.get(), sizeof now);
  return now;
}
void LibraryCg::copy(void* to, const void* from, std::size_t bytes) const {
  measure::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
  stream_.synchronize();
}

}  // namespace bench
