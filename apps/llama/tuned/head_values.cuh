// A query, key or value of a step on its way from the projection to attention: awaited, normed and turned by its position. By a
// warp of tensor core tasks (HeadValues), or by all threads of a portable body (turn_head()).
#pragma once

#include "apps/llama/decode/row_products.cuh"
#include "apps/llama/tuned/cache.cuh"
#include "apps/llama/tuned/inputs.cuh"

namespace llama {

/// Of a warp: `words` as the projection leaves them. `norm`: weights of an RMSNorm that comes first, or null.
struct HeadSource {
  const Stamped* words;  // null: nothing
  const float* norm;
  float scale;
  bool turns;
};

inline constexpr int kMostHeadSize = 256;

/// The size of a head: known at compile time, in tiles of 16, or not.
template <int kTiles>
struct FixedSize {
  static constexpr int kMost = kTiles * 16;
  FLYWHEEL_TASK static constexpr int dims() { return kMost; }
};
struct AnySize {
  static constexpr int kMost = kMostHeadSize;
  int size;
  FLYWHEEL_TASK int dims() const { return size; }
};

/// One lane's pairs of a head, i and i + head_dim / 2, that turn together; what they turn by; and RMSNorm's weights for them.
template <class Size>
class HeadValues {
  static constexpr int kEach = (Size::kMost / 2 + kLanes - 1) / kLanes;

 public:
  FLYWHEEL_TASK explicit HeadValues(const Size& size = {}) : size_(size) {}

  /// What is there before the words are. `turn`: [head_dim / 2][cos, sin] of the position.
  template <class Block>
  FLYWHEEL_TASK void prepare(Block& block, const HeadSource& from, const float* turn) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i >= half()) continue;
      cosine_[j] = from.turns ? turn[2 * i] : 1;
      sine_[j] = from.turns ? turn[2 * i + 1] : 0;
      if (from.norm) norm_a_[j] = from.norm[i], norm_b_[j] = from.norm[i + half()];
    }
  }

  /// Waits for the words.
  template <class Block>
  FLYWHEEL_TASK void load(Block& block, const Stamped* in) {
    const WantedStamp wanted = wanted_stamp(block, false);
    Stamped a[kEach] = {}, b[kEach] = {};
    block.spin([&] {
      std::uint32_t wrong = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int i = block.lane() + j * kLanes;
        if (i < half()) a[j] = look_at(in[i]), b[j] = look_at(in[i + half()]);
      }
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (block.lane() + j * kLanes < half()) wrong |= wanted.wrong(a[j]) | wanted.wrong(b[j]);
      return wrong == 0;
    });
#pragma unroll
    for (int j = 0; j < kEach; ++j) a_[j] = a[j].value(), b_[j] = b[j].value();
  }

  /// The same of what is there: in.two(i, k, values) gives values i and k.
  template <class Block, class Values>
  FLYWHEEL_TASK void load(Block& block, const Values& in) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i >= half()) continue;
      float two[2];
      in.two(i, i + half(), two);
      a_[j] = two[0], b_[j] = two[1];
    }
  }

  /// RMSNorm if there is one, then the rotation by the step's position. What is scaled are the angles' words, and not before:
  /// who multiplies them waits for them, and asks for keys a trip to L2 later.
  template <class Block>
  FLYWHEEL_TASK void rotate(Block& block, const HeadSource& from, float eps) {
    if (from.norm) normalise(block, eps);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const float a = a_[j], b = b_[j], cosine = cosine_[j] * from.scale, sine = sine_[j] * from.scale;
      a_[j] = clamp_to_half(a * cosine - b * sine);
      b_[j] = clamp_to_half(b * cosine + a * sine);
    }
  }

  /// use(i, value) for the lane's values of the head.
  template <class Block, class Use>
  FLYWHEEL_TASK void for_each(const Block& block, Use&& use) const {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i < half()) use(i, a_[j]), use(i + half(), b_[j]);
    }
  }

 private:
  FLYWHEEL_TASK int half() const { return size_.dims() / 2; }

  template <class Block>
  FLYWHEEL_TASK void normalise(Block& block, float eps) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) squares += a_[j] * a_[j] + b_[j] * b_[j];
    for (int apart = kLanes / 2; apart; apart /= 2) squares += block.shuffle_xor(squares, apart);
    const float scale = inverse_sqrt(squares * (1.f / static_cast<float>(size_.dims())) + eps);
#pragma unroll
    for (int j = 0; j < kEach; ++j) a_[j] *= scale * norm_a_[j], b_[j] *= scale * norm_b_[j];
  }

  [[no_unique_address]] Size size_;
  float a_[kEach] = {}, b_[kEach] = {}, cosine_[kEach] = {}, sine_[kEach] = {}, norm_a_[kEach] = {}, norm_b_[kEach] = {};
};

/// Portable: `from` normed, if `norm` is not null, and turned, to `to`. `in`: as much scratch memory. All threads of a block.
template <class Block>
FLYWHEEL_TASK void turn_head(Block& block, const Stamped* from, const float* norm, const float* turn, int dims, float eps,
                             float* in, float* to) {
  const int half = dims / 2;
  block.for_each(dims, [&](int i) { in[i] = look_at(from[i]).value(); });
  block.sync();
  const float scale = norm ? rms_scale(block, in, dims, eps) : 1.f;
  block.sync();
  block.for_each(half, [&](int i) {
    const float a = norm ? in[i] * scale * norm[i] : in[i];
    const float b = norm ? in[i + half] * scale * norm[i + half] : in[i + half];
    to[i] = a * turn[2 * i] - b * turn[2 * i + 1];
    to[i + half] = b * turn[2 * i] + a * turn[2 * i + 1];
  });
  block.sync();
}

/// Portable: a turned key and its value, as the projection leaves it, into the cache of a head. All threads of a block.
template <class Block>
FLYWHEEL_TASK void append_to_cache(Block& block, const TunedCache& head, int position, int dims, const float* key,
                                   const Stamped* value) {
  block.for_each(dims, [&](int i) {
    head.keys[TunedCache::key_at(position, i, dims)].bits = static_cast<std::uint16_t>(round_to_half(key[i]));
    head.values[TunedCache::value_at(position, i, dims)].bits =
        static_cast<std::uint16_t>(round_to_half(look_at(value[i]).value()));
  });
  block.sync();
}

}  // namespace llama
