// The matrices of a model as the tuned tasks find them.
#pragma once

#include <flywheel/flywheel.hpp>

#include <unordered_map>
#include <vector>

#include "apps/llama/checkpoint/weights.hpp"
#include "apps/llama/tuned/patches.cuh"

namespace llama {

using namespace flywheel;

/// The patches of a matrix whose rows are added one by one.
struct PatchList {
  std::vector<std::uint32_t> first{0};  // see StreamedMatrix
  std::vector<Patch> patches;

  void add_row(const Bf16* weights, int columns);
};

/// Owner of what the tuned tasks know of a model's matrices.
class StreamedWeights {
 public:
  /// Reads back all matrices that the stream brings, and looks for what it leaves; on CPU workers, whose bodies take the
  /// weights themselves, it does not. `weights` must outlive it.
  StreamedWeights(Runtime& runtime, const Weights& weights);

  const Weights& plain() const { return weights_; }
  /// Of one of these matrices, in device memory; null for one without weights.
  const StreamedMatrix* of(const MatrixBuffer& matrix) const;
  /// Whether weights of rows first..end-1 of it have patches; there may be fewer rows.
  bool has_patches(const MatrixBuffer& matrix, int first, int end) const;
  std::size_t patches() const { return count_; }

 private:
  struct Patches {
    std::vector<std::uint32_t> first_on_host;
    Buffer<std::uint32_t> first;
    Buffer<Patch> all;
  };
  Patches find_patches(Runtime& runtime, const MatrixBuffer& matrix);

  const Weights& weights_;
  std::vector<Patches> owned_;
  std::unordered_map<const void*, std::size_t> index_;  // by the matrix's data
  Buffer<StreamedMatrix> matrices_;
  std::size_t count_ = 0;
};

}  // namespace llama
