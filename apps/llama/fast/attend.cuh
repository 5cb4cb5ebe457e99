// Attention of the query heads that share a key and value head, over one part of the context, by tensor cores.
//
// Keys are A of scores = keys * query, values transposed A of output = values^T * weights. Queries and weights are B,
// each number the sum of two halves, so up to 4 heads fill its 8 columns, and a score is the sum of a
// lane's two.
#pragma once

#include "apps/llama/fast/cache.cuh"
#include "apps/llama/fast/partials.cuh"

namespace flywheel::llama {

/// The `count` query heads from `head` on, which are those of one key and value head. The part that holds the step's
/// position also puts the step's key and value into the cache.
struct FastAttend {
  static constexpr bool kEarly = true;
  const Stamped* qkv;  // [sequences][heads + 2 kv_heads][head_dim], before norm and rotation
  Partials partials;
  FastCache cache;
  const float* rope;  // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null
  const float* k_norm;
  const StepState* states;
  Stamped* results;     // see PackedOutput
  float eps;
  std::int32_t positions;  // the cache has room for, a multiple of 16
  std::uint8_t sequence, kv_heads, kv_head, head, count, split;

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable(block);
  }

  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    Block copy = block;  // for the call: the caller's own stays in registers
    switch (partials.head_dim) {
      case 32: return attend<2>(copy);
      case 64: return attend<4>(copy);
      case 128: return attend<8>(copy);
      default: block.fail(kHeadSizeUnknown);
    }
  }

  static constexpr std::uint32_t kHeadSizeUnknown = 2;

 private:
  /// Read once: each look at global memory is a trip to L2, because every acquire empties L1.
  FLYWHEEL_TASK Span span() const {
    const std::uint32_t position = states[sequence].position;
    const int share = partials.share(position), first = split * share, all = static_cast<int>(position) + 1;
    return {static_cast<int>(position), first, first + share < all ? first + share : all, Partials::used(position, share)};
  }
  FLYWHEEL_TASK int dims() const { return partials.head_dim; }
  FLYWHEEL_TASK const Stamped* row(int i) const { return qkv + ((partials.heads + 2 * kv_heads) * sequence + i) * dims(); }
  FLYWHEEL_TASK const Stamped* query(int i) const { return row(head + i); }
  FLYWHEEL_TASK const Stamped* key() const { return row(partials.heads + kv_head); }
  FLYWHEEL_TASK const Stamped* value() const { return row(partials.heads + kv_heads + kv_head); }
  FLYWHEEL_TASK std::size_t cache_at() const {
    return static_cast<std::size_t>(sequence * kv_heads + kv_head) * static_cast<std::size_t>(positions) *
           static_cast<std::size_t>(dims());
  }

  /// 1 / sqrt(head_dim), and log2(e): weights are powers of 2.
  FLYWHEEL_TASK float query_scale() const { return 1.44269504f * inverse_sqrt(static_cast<float>(dims())); }

  FLYWHEEL_TASK static float narrow(float value, std::uint16_t& high) {
    high = static_cast<std::uint16_t>(round_to_half(value));
    return value - from_half(high);
  }

  // ---- by tensor cores ----

  /// Shared memory of all warps.
  struct Area {
    std::uint16_t* query;  // B of the scores: [tile][column][lane quarter][4]
    std::uint16_t* step;   // the step's key and value
    float* scales;         // [warps][4][largest, sum]
    float* sums;           // [warps][4][head_dim]
  };

  /// One lane's pairs of a head, i and i + head_dim / 2, that turn together; the angle they turn by, and RMSNorm's weights
  /// for them, or ones.
  template <int kTiles>
  struct Pairs {
    static constexpr int kHalf = kTiles * 8, kEach = (kHalf + kLanes - 1) / kLanes;
    float a[kEach] = {}, b[kEach] = {}, cosine[kEach] = {}, sine[kEach] = {}, norm_a[kEach] = {}, norm_b[kEach] = {};
  };

  /// Keys and values of 16 positions.
  template <int kTiles>
  struct Tiles {
    TilePart keys[kTiles], values[kTiles];
  };

  /// What one warp has of its positions. A lane's scores and weights are those of head lane % 4, its outputs too.
  template <int kTiles>
  struct WarpPart {
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0;              // of the lane's own positions
    float out[kTiles][4] = {};  // dimensions lane / 4 and lane / 4 + 8 of each tile, columns high and low
  };

  /// What earlier passes left (where the step is, angles, cache) is fetched while this step's qkv are still being made.
  template <int kTiles, class Block>
  FLYWHEEL_COLD void attend(Block& block) const {
    constexpr int kDims = kTiles * 16;
    const int warp = block.warp();
    const Span part_of = span();
    if (part_of.last <= part_of.first) {  // the context is short: nobody reads this part
      if (block.leader()) block.sent();
      return;
    }
    Pairs<kTiles> pairs;
    if (warp < count) prepare(block, pairs, q_norm, part_of.position);
    else if (warp == kHeadsTogether) prepare(block, pairs, k_norm, part_of.position);
    const int first = part_of.first + warp * 16;
    Tiles<kTiles> tiles;
    load(block, tiles.keys, cache.keys, first < part_of.last ? first : part_of.first);
    load(block, tiles.values, cache.values, first < part_of.last ? first : part_of.first);

    if (!block.await_sent()) return;
    if (warp < count) load(block, pairs, query(warp));
    else if (warp == kHeadsTogether) load(block, pairs, key());
    else if (warp == kHeadsTogether + 1) load(block, pairs, value());
    block.sync();  // all warps are through with the last task's scratch
    Area area{block.template scratch<std::uint16_t>(kTiles * 8 * 16), block.template scratch<std::uint16_t>(2 * kDims),
              block.template scratch<float>(kTileWarps * kHeadsTogether * 2),
              block.template scratch<float>(kTileWarps * kHeadsTogether * kDims)};
    if (!area.query || !area.step || !area.scales || !area.sums) return;
    if (warp < kHeadsTogether) put_query(block, area, pairs);
    else if (warp == kHeadsTogether && part_of.has_step()) append_key(block, area, pairs, part_of.position);
    else if (warp == kHeadsTogether + 1 && part_of.has_step()) append_value(block, area, pairs, part_of.position);
    block.sync();
    WarpPart<kTiles> part;
    for (int from = first; from < part_of.last; from += kTileWarps * 16) {
      if (part_of.position / 16 * 16 == from) put_step(block, area, tiles, part_of.position);
      add_positions(block, area, part, tiles, from, part_of.last);
    }
    leave(block, area, part);
    block.sync();
    write<kTiles>(block, area, part_of.used);
    block.sync();
    if (part_of.used > 1) join<kTiles>(block, area, part_of.used);
    if (block.leader()) block.sent();
  }

  template <int kTiles, class Block>
  FLYWHEEL_TASK void prepare(Block& block, Pairs<kTiles>& pairs, const float* norm, int position) const {
    using P = Pairs<kTiles>;
    const float* turn = rope + static_cast<std::size_t>(position) * (kTiles * 16);
#pragma unroll
    for (int j = 0; j < P::kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i >= P::kHalf) continue;
      pairs.cosine[j] = turn[2 * i];
      pairs.sine[j] = turn[2 * i + 1];
      pairs.norm_a[j] = norm ? norm[i] : 1.f;
      pairs.norm_b[j] = norm ? norm[i + P::kHalf] : 1.f;
    }
  }

  template <int kTiles, class Block>
  FLYWHEEL_TASK static void load(Block& block, Pairs<kTiles>& pairs, const Stamped* in) {
    using P = Pairs<kTiles>;
    const WantedStamp wanted = wanted_stamp(block, false);
    Stamped a[P::kEach] = {}, b[P::kEach] = {};
    block.spin([&] {
      std::uint32_t wrong = 0;
#pragma unroll
      for (int j = 0; j < P::kEach; ++j) {
        const int i = block.lane() + j * kLanes;
        if (i < P::kHalf) a[j] = look_at(in[i]), b[j] = look_at(in[i + P::kHalf]);
      }
#pragma unroll
      for (int j = 0; j < P::kEach; ++j)
        if (block.lane() + j * kLanes < P::kHalf) wrong |= wanted.wrong(a[j]) | wanted.wrong(b[j]);
      return wrong == 0;
    });
#pragma unroll
    for (int j = 0; j < P::kEach; ++j) pairs.a[j] = a[j].value(), pairs.b[j] = b[j].value();
  }

  /// RMSNorm if there is one, then the rotation by the step's position; use(i, value) for the lane's values of the head.
  template <int kTiles, class Block, class Use>
  FLYWHEEL_TASK void rotate(Block& block, const Pairs<kTiles>& pairs, bool normed, Use&& use) const {
    using P = Pairs<kTiles>;
    float scale = 1;
    if (normed) {
      float squares = 0;
#pragma unroll
      for (int j = 0; j < P::kEach; ++j) squares += pairs.a[j] * pairs.a[j] + pairs.b[j] * pairs.b[j];
      for (int apart = kLanes / 2; apart; apart /= 2) squares += block.shuffle_xor(squares, apart);
      scale = inverse_sqrt(squares * (1.f / (16 * kTiles)) + eps);
    }
#pragma unroll
    for (int j = 0; j < P::kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i >= P::kHalf) continue;
      const float a = pairs.a[j] * scale * pairs.norm_a[j], b = pairs.b[j] * scale * pairs.norm_b[j];
      use(i, a * pairs.cosine[j] - b * pairs.sine[j]);
      use(i + P::kHalf, b * pairs.cosine[j] + a * pairs.sine[j]);
    }
  }

  /// Warp w < 4: its head's columns of B; zeros where there is no such head.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void put_query(Block& block, const Area& area, const Pairs<kTiles>& pairs) const {
    const int w = block.warp();
    const auto at = [&](int dim, int column) -> std::uint16_t& {
      return area.query[(dim / 16 * 8 + column) * 16 + dim % 16];
    };
    if (w >= count) {
      for (int i = block.lane(); i < kTiles * 16; i += kLanes) at(i, 2 * w) = at(i, 2 * w + 1) = 0;
      return;
    }
    rotate(block, pairs, q_norm != nullptr, [&](int i, float value) {
      std::uint16_t high, low;
      narrow(narrow(value * query_scale(), high), low);
      at(i, 2 * w) = high;
      at(i, 2 * w + 1) = low;
    });
  }

  template <int kTiles, class Block>
  FLYWHEEL_TASK void append_key(Block& block, const Area& area, const Pairs<kTiles>& pairs, int position) const {
    Half* keys = cache.keys + cache_at();
    rotate(block, pairs, k_norm != nullptr, [&](int i, float rotated) {
      area.step[i] = static_cast<std::uint16_t>(round_to_half(rotated));
      keys[FastCache::key_at(position, i, kTiles * 16)].bits = area.step[i];
    });
  }
  template <int kTiles, class Block>
  FLYWHEEL_TASK void append_value(Block& block, const Area& area, const Pairs<kTiles>& pairs, int position) const {
    Half* values = cache.values + cache_at();
    const auto put = [&](int i, float value) {
      std::uint16_t& bits = area.step[kTiles * 16 + i];
      bits = static_cast<std::uint16_t>(round_to_half(value));
      values[FastCache::value_at(position, i, kTiles * 16)].bits = bits;
    };
    for (int j = 0; j < Pairs<kTiles>::kEach; ++j) {
      const int i = block.lane() + j * kLanes;
      if (i >= Pairs<kTiles>::kHalf) continue;
      put(i, pairs.a[j]);
      put(i + Pairs<kTiles>::kHalf, pairs.b[j]);
    }
  }

  /// Keys or values of positions from..from+15.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void load(Block& block, TilePart (&tiles)[kTiles], const Half* of, int from) const {
    const Half* at = of + (cache_at() + FastCache::tile(from, 0, kTiles * 16));
#pragma unroll
    for (int t = 0; t < kTiles; ++t) tiles[t] = reinterpret_cast<const TilePart*>(at + t * 256)[block.lane()];
  }

  /// The step's key and value into the tiles that were loaded before they were in the cache; see FastCache::key_at().
  template <int kTiles, class Block>
  FLYWHEEL_TASK static void put_step(Block& block, const Area& area, Tiles<kTiles>& tiles, int position) {
    const bool lower = position % 16 >= 8, second = position % 2 != 0;
    const auto* keys = reinterpret_cast<const FourWeights*>(area.step);
    const bool has_key = block.lane() / 4 == position % 8, has_value = block.lane() % 4 == position % 8 / 2;
    const auto put_half = [&](std::uint32_t& pair, std::uint32_t bits) {
      pair = second ? (pair & 0xffffu) | bits << 16 : (pair & 0xffff0000u) | bits;
    };
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const FourWeights key = keys[t * 4 + block.lane() % 4];
      const std::uint16_t* value = area.step + kTiles * 16 + t * 16 + block.lane() / 4;
      auto& of_key = tiles.keys[t].registers;
      auto& of_value = tiles.values[t].registers;
      if (has_key) of_key[0] = lower ? of_key[0] : key.pairs[0], of_key[2] = lower ? of_key[2] : key.pairs[1];
      if (has_key) of_key[1] = lower ? key.pairs[0] : of_key[1], of_key[3] = lower ? key.pairs[1] : of_key[3];
      if (has_value && !lower) put_half(of_value[0], value[0]), put_half(of_value[1], value[8]);
      if (has_value && lower) put_half(of_value[2], value[0]), put_half(of_value[3], value[8]);
    }
  }

  /// Positions from..from+15. The warp's next ones are on their way as soon as there is room for them.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void add_positions(Block& block, const Area& area, WarpPart<kTiles>& part, Tiles<kTiles>& tiles, int from,
                                   int last) const {
    const int next = from + kTileWarps * 16 < last ? from + kTileWarps * 16 : from;
    float scores[4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const auto* b = reinterpret_cast<const FourWeights*>(area.query) + (t * 8 + block.lane() / 4) * 4 + block.lane() % 4;
      const std::uint32_t input[2] = {b->pairs[0], b->pairs[1]};
      block.multiply_add_half(scores, tiles.keys[t].registers, input);
    }
    if (next != from) load(block, tiles.keys, cache.keys, next);
    float weights[2];
    soften(block, part, scores, from, last, weights);
    std::uint32_t input[2];
    spread(block, weights, input);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) block.multiply_add_half(part.out[t], tiles.values[t].registers, input);
    if (next != from) load(block, tiles.values, cache.values, next);
  }

  /// Scores of positions lane / 4 and lane / 4 + 8 to weights; what came before is brought down if one is larger.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void soften(Block& block, WarpPart<kTiles>& part, const float (&scores)[4], int from, int last,
                            float (&weights)[2]) const {
    const float none = -std::numeric_limits<float>::infinity();
    const int position = from + block.lane() / 4;
    const float first = position < last ? scores[0] + scores[1] : none;
    const float second = position + 8 < last ? scores[2] + scores[3] : none;
    float largest = first > second ? first : second;
#pragma unroll
    for (int apart = 4; apart < kLanes; apart *= 2) {
      const float other = block.shuffle_xor(largest, apart);
      largest = other > largest ? other : largest;
    }
    largest = part.largest > largest ? part.largest : largest;  // finite: `from` is a position there is
    const float keep = std::exp2(part.largest - largest);
    weights[0] = std::exp2(first - largest);
    weights[1] = std::exp2(second - largest);
    part.largest = largest;
    part.sum = part.sum * keep + (weights[0] + weights[1]);
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (float& value : part.out[t]) value *= keep;
  }

  /// The upper or the lower of the two halves that make a number.
  FLYWHEEL_TASK static std::uint32_t part_of_column(float value, bool low) {
    std::uint16_t high_bits, low_bits;
    narrow(narrow(value, high_bits), low_bits);
    return low ? low_bits : high_bits;
  }

  /// Weights as B: the lane of column c (head c / 2, part c % 2) and quarter q needs positions 2q, 2q + 1, 2q + 8, 2q + 9.
  template <class Block>
  FLYWHEEL_TASK static void spread(Block& block, const float (&weights)[2], std::uint32_t (&b)[2]) {
    const int column = block.lane() / 4, from = block.lane() % 4 * 2 * 4 + column / 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t first = part_of_column(block.shuffle(weights[i], from), column % 2 != 0);
      const std::uint32_t second = part_of_column(block.shuffle(weights[i], from + 4), column % 2 != 0);
      b[i] = first | second << 16;
    }
  }

  template <int kTiles, class Block>
  FLYWHEEL_TASK void leave(Block& block, const Area& area, WarpPart<kTiles>& part) const {
    for (int apart = 4; apart < kLanes; apart *= 2) part.sum += block.shuffle_xor(part.sum, apart);
    const int at = block.warp() * kHeadsTogether + block.lane() % 4, dim = block.lane() / 4;
    if (dim == 0) {
      area.scales[at * 2] = part.largest;
      area.scales[at * 2 + 1] = part.sum;
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      area.sums[at * kTiles * 16 + t * 16 + dim] = part.out[t][0] + part.out[t][1];
      area.sums[at * kTiles * 16 + t * 16 + dim + 8] = part.out[t][2] + part.out[t][3];
    }
  }

  /// All warps' sums together, to global memory: the result if there is no other part.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void write(Block& block, const Area& area, int used) const {
    constexpr int kDims = kTiles * 16;
    const PackedOutput packed = output(block);
    block.for_each(count * kDims, [&](int i) {  // whole warps: the neighbour is there
      const int h = i / kDims, dim = i % kDims;
      const int to = partials.index(sequence, head + h, split);
      float largest = -std::numeric_limits<float>::infinity();
      for (int w = 0; w < kTileWarps; ++w) {
        const float one = area.scales[(w * kHeadsTogether + h) * 2];
        largest = one > largest ? one : largest;
      }
      float sum = 0, weights = 0;
      for (int w = 0; w < kTileWarps; ++w) {
        const int from = w * kHeadsTogether + h;
        const float weight = std::exp2(area.scales[from * 2] - largest);
        weights += weight * area.scales[from * 2 + 1];
        sum += weight * area.sums[from * kDims + dim];
      }
      if (used == 1) packed.put(block, sequence, (head + h) * kDims + dim, sum * reciprocal(weights), 1);
      else partials.values(to)[dim] = sum;
      if (used > 1 && dim == 0) partials.scale(to) = {largest, weights};
    });
  }

  /// The last part of these heads puts all together.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void join(Block& block, const Area& area, int used) const {
    constexpr int kDims = kTiles * 16;
    if (block.leader()) area.step[0] = partials.leave(sequence, head, used);
    block.sync();
    if (!area.step[0]) return;
    const PackedOutput packed = output(block);
    block.for_each(count * kDims, [&](int i) {
      const int h = head + i / kDims, dim = i % kDims;
      packed.put(block, sequence, h * kDims + dim, partials.combine(sequence, h, dim, used), 1);
    });
    block.sync();
  }

  template <class Block>
  FLYWHEEL_TASK PackedOutput output(const Block& block) const {
    return {results, partials.sequences, partials.columns(), block.stamp()};
  }

  // ---- portable: the same sums over the same cache, one thread for each position or dimension ----

  template <class Block>
  FLYWHEEL_TASK void portable(Block& block) const {
    const Span part = span();
    float* turned = block.template scratch<float>(dims());
    float* in = block.template scratch<float>(dims());
    float* weights = block.template scratch<float>(partials.share(static_cast<std::uint32_t>(part.position)));
    if (!turned || !in || !weights || part.last <= part.first) return;
    if (part.has_step()) portable_append(block, in, turned, part.position);
    for (int h = 0; h < count; ++h) {
      portable_rotate(block, query(h), in, q_norm, part.position, turned);
      portable_head(block, h, part, turned, weights);
    }
    portable_join(block, part.used);
  }

  template <class Block>
  FLYWHEEL_TASK void portable_join(Block& block, int used) const {
    block.sync();  // all is written
    const bool mine = block.leader() && partials.leave(sequence, head, used);
    const int last = block.reduce(mine ? 1 : 0, [](int a, int b) { return a + b; });
    if (!last) return;
    block.for_each(count * dims(), [&](int i) {
      const int h = head + i / dims();
      partials.result(sequence, h)[i % dims()] = partials.combine(sequence, h, i % dims(), used);
    });
  }

  template <class Block>
  FLYWHEEL_TASK void portable_rotate(Block& block, const Stamped* from, float* in, const float* norm, int position,
                                     float* to) const {
    const int half = dims() / 2;
    block.for_each(dims(), [&](int i) { in[i] = look_at(from[i]).value(); });
    block.sync();
    const float scale = norm ? rms_scale(block, in, dims(), eps) : 1.f;
    const float* turn = rope + static_cast<std::size_t>(position) * static_cast<std::size_t>(dims());
    block.sync();
    block.for_each(half, [&](int i) {
      const float a = norm ? in[i] * scale * norm[i] : in[i];
      const float b = norm ? in[i + half] * scale * norm[i + half] : in[i + half];
      to[i] = a * turn[2 * i] - b * turn[2 * i + 1];
      to[i + half] = b * turn[2 * i] + a * turn[2 * i + 1];
    });
    block.sync();
  }

  template <class Block>
  FLYWHEEL_TASK void portable_append(Block& block, float* in, float* turned, int position) const {
    portable_rotate(block, key(), in, k_norm, position, turned);
    block.for_each(dims(), [&](int i) {
      cache.keys[cache_at() + FastCache::key_at(position, i, dims())].bits = static_cast<std::uint16_t>(round_to_half(turned[i]));
      cache.values[cache_at() + FastCache::value_at(position, i, dims())].bits = static_cast<std::uint16_t>(round_to_half(look_at(value()[i]).value()));
    });
    block.sync();
  }

  template <class Block>
  FLYWHEEL_TASK void portable_head(Block& block, int h, const Span& part, const float* turned, float* weights) const {
    const int n = part.last - part.first, to = partials.index(sequence, head + h, split);
    const auto larger = [](float a, float b) { return a > b ? a : b; };
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    block.for_each(n, [&](int p) {
      float score = 0;
      for (int i = 0; i < dims(); ++i)
        score += turned[i] * to_float(cache.keys[cache_at() + FastCache::key_at(part.first + p, i, dims())]);
      weights[p] = score * query_scale();
      largest = larger(largest, weights[p]);
    });
    largest = block.reduce(largest, larger);
    block.for_each(n, [&](int p) { sum += weights[p] = std::exp2(weights[p] - largest); });
    sum = block.reduce(sum, [](float a, float b) { return a + b; });
    block.sync();
    block.for_each(dims(), [&](int i) {
      float out = 0;
      for (int p = 0; p < n; ++p)
        out += weights[p] * to_float(cache.values[cache_at() + FastCache::value_at(part.first + p, i, dims())]);
      partials.values(to)[i] = out;
    });
    if (block.leader()) partials.scale(to) = {largest, sum};
    block.sync();
  }
};
static_assert(sizeof(FastAttend) <= kTaskArgBytes);

}  // namespace flywheel::llama
