// Memory for many objects of one kind that are made and dropped in one run of the simulator. A run is a process of its own, so
// that memory never goes back to the system, and pages of 2 MiB cost fewer page faults.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace flywheel::simulate {

/// What take() gives is zeroed, or as give() got it.
template <class T>
class Pool {
 public:
  T* take() {
    if (free_.empty()) return fresh();
    T* const one = free_.back();
    free_.pop_back();
    return one;
  }
  void give(T* one) { free_.push_back(one); }

 private:
  static constexpr std::size_t kBytes = std::size_t{2} << 20, kOfChunk = kBytes / sizeof(T);

  T* fresh() {
    if (left_ == 0) {
      void* const memory = mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) std::abort();
      auto* const at = static_cast<unsigned char*>(memory);
      next_ = reinterpret_cast<T*>(at + (kBytes - reinterpret_cast<std::size_t>(at) % kBytes));
      madvise(next_, kBytes, MADV_HUGEPAGE);
      left_ = kOfChunk;
    }
    --left_;
    return next_++;
  }

  T* next_ = nullptr;
  std::size_t left_ = 0;
  std::vector<T*> free_;
};

}  // namespace flywheel::simulate
