// A histogram of latencies in bounded memory, for measurements that take millions of samples while a program's own memory is
// under observation.
//
// The buckets are logarithmic with a linear part in each octave, as in HdrHistogram (Tene, 2012): every value is kept to 1 part
// in 64, from 0 to 2^40 ns (18 minutes), in 18 KB. Larger values count as the largest.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace serve {

/// Not thread-safe: each thread has its own, and merge() adds them up.
class LogHistogram {
 public:
  void add(std::int64_t ns) {
    const std::uint64_t value = ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
    ++counts_[bucket_of(value)];
    ++count_;
    if (value > max_) max_ = value;
  }
  void merge(const LogHistogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  std::uint64_t count() const { return count_; }
  /// The largest value, exact.
  std::uint64_t max_ns() const { return max_; }
  /// Nearest rank: the largest value of the bucket that holds it, at most 1/64 above the sample itself, and never above
  /// max_ns(). `percent` in (0, 100]. 0 if there are no samples.
  double percentile_ns(double percent) const;

 private:
  static constexpr std::uint32_t kLinearBits = 6, kOctaves = 35;
  static constexpr std::uint64_t kLinear = 1u << kLinearBits;
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << 40) - 1;

  /// Values below kLinear have a bucket each. Above, an octave [2^k, 2^(k+1)) has kLinear buckets of one width.
  static std::size_t bucket_of(std::uint64_t value) {
    if (value > kMost) value = kMost;
    if (value < kLinear) return value;
    const auto octave = static_cast<std::uint32_t>(std::bit_width(value)) - kLinearBits;  // 1 for [64, 128)
    return octave * kLinear + ((value >> (octave - 1)) - kLinear);
  }
  /// The largest value of a bucket: the reverse of bucket_of().
  static std::uint64_t largest_of(std::size_t bucket) {
    if (bucket < kLinear) return bucket;
    const std::uint64_t octave = bucket / kLinear, width = std::uint64_t{1} << (octave - 1);
    return (kLinear + bucket % kLinear) * width + width - 1;
  }

  std::array<std::uint64_t, kOctaves * kLinear> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace serve
