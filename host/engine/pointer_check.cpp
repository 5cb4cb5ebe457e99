#include "pointer_check.hpp"

namespace flywheel::detail {

std::string why_unusable(const PointerFacts& facts, int device) {
  if (facts.kind == MemoryKind::ordinary)
    return "it points to ordinary host memory, which the GPU cannot read: use Runtime::allocate() or cudaMalloc";
  if (facts.kind == MemoryKind::registered && !facts.is_mapped)
    return "it points to pinned host memory that is not mapped for GPU " + std::to_string(device) +
           ": register it with cudaHostRegisterMapped, or use Runtime::allocate()";
  if (facts.kind == MemoryKind::device && facts.device != device)
    return "it points to memory of GPU " + std::to_string(facts.device) + ", and the runtime is on GPU " +
           std::to_string(device) + ": call cudaSetDevice(" + std::to_string(device) +
           ") before cudaMalloc, or set Options::device";
  return {};
}

}  // namespace flywheel::detail
