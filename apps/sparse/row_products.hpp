// A worker's rows of a sparse matrix, and their products with a vector. Part of conjugate_gradient.hpp.
#pragma once

#include <flywheel/task.cuh>

#include "apps/sparse/csr.hpp"

namespace sparse {

/// Scratch memory, given out as long as it lasts: a task that stays for a whole solve keeps what it reads again and again in
/// shared memory, which a kernel an iteration would have to load anew.
template <class Block>
class NearMemory {
 public:
  FLYWHEEL_TASK NearMemory(Block& block, std::uint32_t bytes) : block_(block), left_(bytes) {}

  /// Memory for n values: scratch memory, or `far` if that does not fit any more. All threads of the block call.
  template <class T>
  FLYWHEEL_TASK T* place(T* far, std::uint32_t n) {
    const std::uint64_t bytes = (n * sizeof(T) + 15) / 16 * 16;
    if (bytes > left_) return far;
    left_ -= static_cast<std::uint32_t>(bytes);
    return block_.template scratch<T>(static_cast<int>(n));
  }
  /// The same for constants, which are copied there. They are there after a sync().
  template <class T>
  FLYWHEEL_TASK const T* copy(const T* far, std::uint32_t n) {
    T* const near = place(const_cast<T*>(far), n);
    if (near != far) block_.for_each(static_cast<int>(n), [&](int i) { near[i] = far[i]; });
    return near;
  }

 private:
  Block& block_;
  std::uint32_t left_;
};

class RowProducts {
 public:
  /// Rows that together move about as many bytes as those of each other worker: an entry has 12, and what a solver does with a
  /// row beside the product has some 100.
  template <class Block>
  FLYWHEEL_TASK RowProducts(const Block& block, const Csr& a)
      : first_(first_row(a, block.worker(), block.workers())),
        count_(first_row(a, block.worker() + 1, block.workers()) - first_),
        first_entry_(a.offsets[first_]),
        entries_(a.offsets[first_ + count_] - first_entry_),
        lanes_(1),
        offsets_(a.offsets + first_),
        columns_(a.columns + first_entry_),
        values_(a.values + first_entry_) {
    const std::uint64_t at_once = std::uint64_t{count_} * kAhead;
    while (lanes_ < Block::kLanes && lanes_ * at_once < entries_) lanes_ *= 2;
  }

  FLYWHEEL_TASK std::uint32_t first() const { return first_; }
  FLYWHEEL_TASK std::uint32_t count() const { return count_; }

  /// Copies of the rows nearer to the worker, as far as they fit. All threads of the block call.
  template <class Block>
  FLYWHEEL_TASK void come_near(Block& block, NearMemory<Block>& near) {
    offsets_ = near.copy(offsets_, count_ + 1);
    columns_ = near.copy(columns_, entries_);
    values_ = near.copy(values_, entries_);
    block.sync();
  }

  /// Calls f(i, product) for each row first() + i, with the row's product with v, which others may have written before the last
  /// meeting. A row is one thread's, and the same one's each time. All threads of the block call.
  template <class Block, class F>
  FLYWHEEL_TASK void multiply(Block& block, const double* v, F&& f) const {
    const auto lane = static_cast<std::uint32_t>(block.lane());
    constexpr std::uint32_t kRows =
        Block::kLanes;  // of a warp at a time: all lanes have a row in f, even if some share one here
    for (std::uint32_t at = static_cast<std::uint32_t>(block.warp()) * kRows; at < count_; at += Block::kWarps * kRows) {
      const double product = product_of_lane(block, v, at, lane);
      if (at + lane < count_) f(at + lane, product);
    }
  }

 private:
  /// Entries that a lane loads before it uses the first: a lane waits for memory once for so many.
  static constexpr std::uint32_t kAhead = 8;
  static constexpr std::uint32_t kRowCost = 8;  // what a row costs beside its entries, in entries

  /// The first row of a worker: at its share of the costs of all rows.
  FLYWHEEL_TASK static std::uint32_t first_row(const Csr& a, std::uint32_t worker, std::uint32_t workers) {
    const auto cost = [&a](std::uint32_t row) { return a.offsets[row] + std::uint64_t{kRowCost} * row; };
    const std::uint64_t wanted = cost(a.rows) * worker / workers;
    std::uint32_t low = 0, high = a.rows;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (cost(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /// The products of a warp's rows from `at` on, each lane's own: lanes_ lanes share a row, so it takes lanes_ steps.
  template <class Block>
  FLYWHEEL_TASK double product_of_lane(Block& block, const double* v, std::uint32_t at, std::uint32_t lane) const {
    const std::uint32_t rows = Block::kLanes / lanes_;  // of a step
    double own = 0;
    for (std::uint32_t step = 0; step < lanes_; ++step) {
      double sum = sum_of(v, at + step * rows + lane / lanes_, lane % lanes_);
      for (std::uint32_t apart = lanes_ / 2; apart; apart /= 2) sum += block.shuffle(sum, static_cast<int>(lane ^ apart));
      const double given = block.shuffle(sum, static_cast<int>(lane % rows * lanes_));
      if (lane / rows == step) own = given;
    }
    return own;
  }

  /// The sum of every lanes_-th entry of row i, from entry `from` on; 0 behind the last row.
  FLYWHEEL_TASK double sum_of(const double* v, std::uint32_t i, std::uint32_t from) const {
    double sum = 0;
    if (i >= count_) return sum;
    const std::uint32_t end = offsets_[i + 1] - first_entry_;
#ifdef __CUDA_ARCH__
#pragma unroll 1  // the loads of one turn are many enough, and the code is less
#endif
    for (std::uint32_t e = offsets_[i] - first_entry_ + from; e < end; e += kAhead * lanes_) {
      double value[kAhead], factor[kAhead];
      for (std::uint32_t k = 0; k < kAhead; ++k) {
        const std::uint32_t one = e + k * lanes_;
        value[k] = one < end ? values_[one] : 0;
        factor[k] = one < end ? v[columns_[one]] : 0;
      }
      for (std::uint32_t k = 0; k < kAhead; ++k) sum += value[k] * factor[k];
    }
    return sum;
  }

  std::uint32_t first_, count_, first_entry_, entries_;
  std::uint32_t lanes_;  // that share a row: a power of two, more for longer rows
  const std::uint32_t *offsets_, *columns_;
  const double* values_;
};

}  // namespace sparse
