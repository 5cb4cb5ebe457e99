// Decides whether tasks on a GPU can use a pointer. Included by the GPU engine, which asks CUDA for the facts.
#pragma once

#include <string>

namespace flywheel::detail {

enum class MemoryKind { ordinary, registered, device, managed };

/// What CUDA reports about a pointer.
struct PointerFacts {
  MemoryKind kind;
  int device;      // the owner of the memory, for MemoryKind::device
  bool is_mapped;  // the asking device has an address for it
};

/// Empty if tasks on GPU `device` can use the pointer, else a sentence that says why not and names the remedy.
std::string why_unusable(const PointerFacts& facts, int device);

}  // namespace flywheel::detail
