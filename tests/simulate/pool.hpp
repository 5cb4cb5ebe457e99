// Memory for many objects of one kind that are made and dropped in one run of the simulator. A run is a process of its own, so
// that memory never goes back to the system.
#pragma once

#include <cstddef>
#include <vector>

namespace flywheel::simulate {

/// Zeroed memory that is kept to the end of the process.
void* take_for_good(std::size_t bytes);

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
  static constexpr std::size_t kOfChunk = 64;

  T* fresh() {
    if (left_ == 0) {
      next_ = static_cast<T*>(take_for_good(kOfChunk * sizeof(T)));
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
