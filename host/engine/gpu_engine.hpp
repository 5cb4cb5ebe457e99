// The GPU engine: owns the CUDA streams, the pinned staging memory and the resident kernel. Included by gpu_engine.cpp
// alone; engine.hpp declares make_gpu_engine().
#pragma once

#include <memory>
#include <mutex>

#include "engine.hpp"
#include "gpu_probe.hpp"
#include "gpu_staging.hpp"

namespace flywheel::detail {

class GpuEngine final : public Engine {
 public:
  GpuEngine(const KernelEntry& entry, const Options& options, const GpuFacts& facts);
  ~GpuEngine() override;

  std::string name() const override { return facts_.name; }
  bool is_gpu() const override { return true; }
  std::uint32_t workers() const override { return fit_.workers; }
  bool drains() const override { return drains_; }
  std::uint32_t operand_pages() const override { return fit_.operand_pages; }
  std::uint32_t warps() const override { return warps_; }
  std::uint32_t scratch_bytes(const Options&) const override { return fit_.scratch_bytes; }
  double bytes_of_tick() const override { return facts_.bytes_of_tick; }
  void* allocate_device(std::size_t bytes) override;
  void free_device(void* memory) noexcept override;
  void* allocate_shared(std::size_t bytes) override;
  void free_shared(void* memory) noexcept override;
  void copy_to_device(void* device, const void* host, std::size_t bytes) override;
  void clear(void* device, std::size_t bytes) override;
  void copy_to_host(void* host, const void* device, std::size_t bytes) override;
  void copy_on_device(void* to, const void* from, std::size_t bytes) override;
  std::span<unsigned char> stage(void* device, std::size_t bytes) override;
  std::uint64_t send(void* device, std::span<unsigned char> piece, std::size_t used) override;
  void drop_piece(std::span<unsigned char> piece) noexcept override { uploads_->drop(piece); }
  void finish_uploads(std::uint64_t number) override;
  std::string check_pointer(const void* pointer) const override;
  bool map_matrix(unsigned char (&map)[kTensorMapBytes], const TensorBox& of) const override;
  void launch(const DeviceState& dev) override;
  EngineState state(std::string& why_lost) override;
  void after_stream(CudaStream stream, std::function<void()> then) override;
  void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) override;

 private:
  KernelEntry entry_;
  int device_;
  GpuFacts facts_;
  GpuFit fit_{};
  bool drains_;
  std::uint32_t warps_;  // see warps()
  CudaStream kernel_stream_ = nullptr;
  CudaStream copy_stream_ = nullptr;
  void* staging_ = nullptr;  // pinned, like zeros_
  void* zeros_ = nullptr;
  std::mutex staging_mutex_;
  std::unique_ptr<GpuStaging> uploads_;
};

}  // namespace flywheel::detail
