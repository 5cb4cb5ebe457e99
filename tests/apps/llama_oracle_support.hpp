// What the tests of the tuned decode share: random numbers and oracles in double.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "apps/llama/decode/half.cuh"
#include "apps/llama/tuned/norm.cuh"
#include "apps/llama/tuned/partials.cuh"
#include "apps/llama/tuned/streamed_weights.hpp"
#include "support/seed.hpp"

namespace llama {

class Numbers {
 public:
  float next() { return spread_(draw_); }
  std::vector<float> floats(int count) {
    std::vector<float> all;
    for (int i = 0; i < count; ++i) all.push_back(next());
    return all;
  }
  std::vector<Bf16> weights(int count) {
    std::vector<Bf16> all;
    for (int i = 0; i < count; ++i) all.push_back({static_cast<std::uint16_t>(round_to_bf16(next()))});
    return all;
  }
  std::vector<Half> halves(int count) {
    std::vector<Half> all;
    for (int i = 0; i < count; ++i) all.push_back({static_cast<std::uint16_t>(round_to_half(next()))});
    return all;
  }

 private:
  std::mt19937_64 draw_{flywheel::testing::fresh_seed()};
  std::normal_distribution<float> spread_{0.f, 1.f};
};

/// A matrix as tasks find it, with the patches of all its rows. The weights must outlive it.
class Streamed {
 public:
  Streamed(const std::vector<Bf16>& weights, int columns) : weights_(weights) {
    for (std::size_t at = 0; at < weights.size(); at += static_cast<std::size_t>(columns))
      list_.add_row(weights.data() + at, columns);
    matrix_ = {weights_.data(), list_.first.data(), list_.patches.data()};
  }
  Streamed(const Streamed&) = delete;
  Streamed& operator=(const Streamed&) = delete;

  const StreamedMatrix* matrix() const { return &matrix_; }
  const PatchList& list() const { return list_; }
  const std::vector<Bf16>& weights() const { return weights_; }

 private:
  const std::vector<Bf16>& weights_;
  PatchList list_;
  StreamedMatrix matrix_{};
};

/// The relative error in norm of many numbers.
class Errors {
 public:
  void add(double got, double wanted) { add(got, wanted, wanted); }
  /// `scale`: what rounding's error is relative to, where terms may cancel and `wanted` says less.
  void add(double got, double wanted, double scale) {
    difference_ += (got - wanted) * (got - wanted);
    size_ += scale * scale;
  }
  double relative() const { return std::sqrt(difference_ / size_); }

 private:
  double difference_ = 0, size_ = 0;
};

inline double dot(const std::vector<Bf16>& weights, const std::vector<float>& input, int row, int sequence, int columns) {
  double sum = 0;
  for (int i = 0; i < columns; ++i)
    sum += static_cast<double>(to_float(weights[static_cast<std::size_t>(row * columns + i)])) *
           static_cast<double>(input[static_cast<std::size_t>(sequence * columns + i)]);
  return sum;
}

/// A sum, and its terms' norm: each term is rounded by itself, so the error is relative to that, however much cancels.
struct Product {
  double sum, norm;
};

/// A row's product with the input after RMSNorm (eps 1e-5).
inline Product normed_product(const std::vector<Bf16>& weights, const std::vector<float>& x, const std::vector<float>& norm,
                              int row, int sequence, int columns) {
  double squares = 0, sum = 0, terms = 0;
  for (int i = 0; i < columns; ++i) {
    const double value = static_cast<double>(x[static_cast<std::size_t>(sequence * columns + i)]);
    const double term = static_cast<double>(to_float(weights[static_cast<std::size_t>(row * columns + i)])) * value *
                        static_cast<double>(norm[static_cast<std::size_t>(i)]);
    squares += value * value;
    sum += term;
    terms += term * term;
  }
  const double root = std::sqrt(squares / columns + 1e-5);
  return {sum / root, std::sqrt(terms) / root};
}

inline double normed_dot(const std::vector<Bf16>& weights, const std::vector<float>& x, const std::vector<float>& norm, int row,
                         int sequence, int columns) {
  return normed_product(weights, x, norm, row, sequence, columns).sum;
}

/// Vectors as those who make them leave them: times the norm's weights (if any), with squares in 3 parts.
struct Packed {
  Packed(const std::vector<float>& x, const std::vector<float>& norm, int sequences, std::uint32_t stamp = 1)
      : count(sequences),
        packed(packed_size(sequences, static_cast<int>(x.size()) / sequences)),
        squares(static_cast<std::size_t>(3 * sequences)) {
    const int columns = static_cast<int>(x.size()) / sequences;
    std::vector<float> sums(squares.size());
    for (int s = 0; s < sequences; ++s)
      for (int i = 0; i < columns; ++i) {
        const float value = x[static_cast<std::size_t>(s * columns + i)];
        const auto normed = [&](int at) {
          const float one = x[static_cast<std::size_t>(s * columns + at)];
          return norm.empty() ? one : one * norm[static_cast<std::size_t>(at)];
        };
        if (i % 2 == 0)
          put_stamped(packed[static_cast<std::size_t>(s * columns + i) / 2],
                      round_activation(normed(i)) | round_activation(normed(i + 1)) << 16, stamp);
        sums[static_cast<std::size_t>(i % 3 * sequences + s)] += value * value;
      }
    for (std::size_t i = 0; i < sums.size(); ++i) put_stamped(squares[i], sums[i], stamp);
  }
  NormInput norm() const { return {nullptr, nullptr, squares.data(), 3, 1e-5f}; }
  TiledInput input() const {
    const int columns = 2 * static_cast<int>(packed.size()) / count;
    return {packed.data(), static_cast<std::int16_t>(count),
            false,         false,
            true,          static_cast<std::uint16_t>(product_scratch(columns, count))};
  }

  int count;
  std::vector<Stamped> packed, squares;
};

/// Vectors as other tasks leave them.
inline std::vector<Stamped> stamped(const std::vector<float>& values, std::uint32_t stamp = 1) {
  std::vector<Stamped> all(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) put_stamped(all[i], values[i], stamp);
  return all;
}

inline float unpacked(const std::vector<Stamped>& packed, int columns, int sequence, int column) {
  const std::uint32_t pair = packed[static_cast<std::size_t>(sequence * columns + column) / 2].bits();
  return activation_of(column % 2 ? pair >> 16 : pair & 0xffffu);
}

}  // namespace llama
