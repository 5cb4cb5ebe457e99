// A list of plain values in chunks of the pool: a growing list copies nothing, and takes memory that another graph has
// used before. A graph keeps what each of its tasks has in such lists. Included by graph_node.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "chunk_pool.hpp"

namespace flywheel::detail {

/// Move-only. Positions are 32-bit numbers: the caller refuses what would be longer.
template <class T>
class ChunkList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::uint32_t kPerChunk = kChunkBytes / sizeof(T);

  /// Reads the values from one position on, one after the other.
  class Reader {
   public:
    Reader(const ChunkList& list, std::uint32_t first) : list_(list), next_(first) {}
    const T& next() {
      if (at_ == end_) [[unlikely]]
        turn_chunk();
      return *at_++;
    }

   private:
    void turn_chunk() {
      const std::span<const T> piece = list_.piece(next_, kPerChunk);
      next_ += static_cast<std::uint32_t>(piece.size());
      at_ = piece.data();
      end_ = at_ + piece.size();
    }
    const ChunkList& list_;
    std::uint32_t next_;
    const T *at_ = nullptr, *end_ = nullptr;
  };

  ChunkList() = default;
  ChunkList(ChunkList&& other) noexcept { swap(other); }
  ChunkList& operator=(ChunkList&& other) noexcept {
    ChunkList taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~ChunkList() {
    for (T* chunk : chunks_) give_back_chunk(chunk);
  }
  void swap(ChunkList& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
    std::swap(next_, other.next_);
    std::swap(end_, other.end_);
  }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::uint32_t i) const { return chunks_[i / kPerChunk][i % kPerChunk]; }
  T& operator[](std::uint32_t i) { return chunks_[i / kPerChunk][i % kPerChunk]; }
  T& back() { return next_ ? next_[-1] : (*this)[size_ - 1]; }  // null: where cut() has left it

  // Functions that add throw std::bad_alloc, and then the list is as it was.
  void push_back(const T& value) { *add_together(1) = value; }
  void append(std::span<const T> values) {
    if (static_cast<std::size_t>(end_ - next_) < values.size()) [[unlikely]]
      return append_across(values);
    size_ += static_cast<std::uint32_t>(values.size());
    for (const T& value : values) *next_++ = value;  // mostly few: no call to copy them
  }
  /// Takes the memory for `count` more values, so that adding them throws nothing.
  void make_room(std::size_t count) {
    if (static_cast<std::size_t>(end_ - next_) >= count) [[likely]]
      return;
    while (chunks_.size() * kPerChunk < size_ + count) add_chunk();
  }
  /// Adds `count` values side by side, for the caller to write, at most kPerChunk. They end the list; values between them
  /// and what was its end belong to nobody.
  T* add_together(std::uint32_t count) {
    if (static_cast<std::size_t>(end_ - next_) < count) [[unlikely]]
      open_chunk();
    size_ += count;
    return std::exchange(next_, next_ + count);
  }
  /// Removes the values from `size` on.
  void cut(std::uint32_t size) {
    size_ = size;
    next_ = end_ = nullptr;
    if (size % kPerChunk == 0) return;
    next_ = &(*this)[size];
    end_ = chunks_[size / kPerChunk] + kPerChunk;
  }
  /// The values from `first` on that lie side by side, at most `most`.
  std::span<const T> piece(std::uint32_t first, std::size_t most) const {
    const std::size_t here = std::min(kPerChunk - first % kPerChunk, size_ - first);
    return {&(*this)[first], std::min(here, most)};
  }

 private:
  /// Goes on at the begin of the next chunk, which cut() may have left.
  void open_chunk() {
    const std::uint32_t chunk = (size_ + kPerChunk - 1) / kPerChunk;
    if (chunk == chunks_.size()) add_chunk();
    size_ = chunk * kPerChunk;
    next_ = chunks_[chunk];
    end_ = next_ + kPerChunk;
  }
  void append_across(std::span<const T> values) {
    make_room(values.size());
    for (const T& value : values) push_back(value);
  }
  void add_chunk() {
    if (chunks_.size() == chunks_.capacity()) chunks_.reserve(2 * chunks_.size() + 1);  // the next line must not throw late
    chunks_.push_back(static_cast<T*>(take_chunk()));
  }

  std::vector<T*> chunks_;
  std::uint32_t size_ = 0;
  T *next_ = nullptr, *end_ = nullptr;  // where the next value goes, and the end of that chunk
};

}  // namespace flywheel::detail
