// Whether tasks on a GPU can use a pointer. Included by the GPU engine, which asks CUDA what the pointer is.
#pragma once

#include <string>

namespace flywheel {

enum class MemoryKind { ordinary, registered, device, managed };

/// What CUDA knows of a pointer.
struct PointerFacts {
  MemoryKind kind;
  int device;        // that the memory belongs to, for MemoryKind::device
  bool is_mapped;    // the asking device has an address for it
};

/// Empty if tasks of a kernel on `device` can use the pointer, else a sentence that says why they cannot and the remedy.
std::string why_unusable(const PointerFacts& facts, int device);

}  // namespace flywheel
