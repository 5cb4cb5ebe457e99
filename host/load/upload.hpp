// An upload: the host writes a range of device memory from begin to end, in pieces that the engine hands out, and the
// engine brings each piece to the device while the host writes the next. Included by loader.cpp and graph_image.cpp.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "../engine/engine.hpp"

namespace flywheel::detail {

/// For one thread. A value must not straddle two pieces: begin at a multiple of its size that divides the piece's.
class Upload {
 public:
  Upload(Engine& engine, void* device, std::size_t bytes)
      : engine_(engine),
        device_(static_cast<unsigned char*>(device)),
        left_(bytes) {}
  ~Upload() {
    if (!piece_.empty()) engine_.drop_piece(piece_);
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// The next part of the range, with room for 1 to `most` values. The caller writes all of it.
  template <class T>
  std::span<T> next(std::size_t most) {
    if (used_ == piece_.size()) turn_piece();
    const std::size_t count = std::min(most, (piece_.size() - used_) / sizeof(T));
    auto* values = reinterpret_cast<T*>(piece_.data() + used_);
    used_ += count * sizeof(T);
    return {values, count};
  }
  /// Leaves out the bytes up to the next multiple of `unit` from the begin of the range.
  void align(std::size_t unit) { used_ += (unit - used_ % unit) % unit; }
  /// Sends the last piece. Returns the number for Engine::finish_uploads().
  std::uint64_t finish() {
    if (!piece_.empty()) send();
    return number_;
  }

 private:
  void turn_piece() {
    if (!piece_.empty()) send();
    piece_ = engine_.stage(device_, left_);
  }
  void send() {
    const std::span<unsigned char> piece = std::exchange(piece_, {});
    number_ = engine_.send(device_, piece, std::exchange(used_, 0));
    device_ += piece.size();
    left_ -= piece.size();
  }

  Engine& engine_;
  unsigned char* device_;
  std::size_t left_;  // of the range, from the begin of the piece on
  std::span<unsigned char> piece_;
  std::size_t used_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace flywheel::detail
