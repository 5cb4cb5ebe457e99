// What stands between the product that makes queries, keys and values of a prompt and its attention: norms of heads, rotation,
// and the places in the cache.
//
// A warp takes one head of 16 neighbouring positions at a time, a tile of the cache for each 16 dimensions. Each lane loads
// what it stores: of queries and keys four neighbouring dimensions of two positions, and with them those that they turn with;
// of values two dimensions of four positions. So keys and values go out by 16 bytes a lane, a whole tile a warp.
#pragma once

#include "apps/llama/tuned/prefill_tasks.cuh"
#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// What attention reads of one key and value head and the query heads that share it: keys and values go into the cache, where
/// the steps of the decode read them, too, and queries are turned and scaled. The stretch begins at a multiple of 16.
struct PrefillTurn {
  static constexpr bool kCompiled = false;
  static constexpr int kRows = 16;  // of a task: a multiple
  StretchRows rows;
  PartSums qkv;  // [rows][heads + 2 kv_heads][head_dim], before norm and rotation
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null
  const float* k_norm;
  Half* queries;  // [rows][heads][head_dim]
  float eps;
  std::int32_t room;  // positions in the cache, of each text
  std::int16_t heads, kv_heads, kv_head, head_dim;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (!Block::kOnGpu) return portable(block);
    else if (head_dim == 64) turn<4>(block);
    else if (head_dim == 128) turn<8>(block);
    else if (head_dim == 96) turn<6>(block);
    else turn<2>(block);
  }

 private:
  FLYWHEEL_TASK int group() const { return heads / kv_heads; }
  FLYWHEEL_TASK TunedCache cache_of_head() const {
    return cache.head(static_cast<int>(rows.stretch->text) * kv_heads + kv_head, room, head_dim);
  }
  FLYWHEEL_TASK std::size_t width() const {
    return static_cast<std::size_t>(heads + 2 * kv_heads) * static_cast<std::size_t>(head_dim);
  }
  /// Where head `head` of a row begins in the first part.
  FLYWHEEL_TASK std::size_t place(std::size_t row, int head) const {
    return row * width() + static_cast<std::size_t>(head * head_dim);
  }
  FLYWHEEL_TASK const float* turn_of(std::size_t row) const {
    return rope + (rows.stretch->first + row) * static_cast<std::size_t>(head_dim);
  }
  /// 1 / sqrt(head_dim), and log2(e): weights are powers of 2.
  FLYWHEEL_TASK float query_scale() const { return 1.44269504f * inverse_sqrt(static_cast<float>(head_dim)); }
  FLYWHEEL_TASK Half* query(std::size_t row, int head) const {
    return queries +
           (row * static_cast<std::size_t>(heads) + static_cast<std::size_t>(head)) * static_cast<std::size_t>(head_dim);
  }

  /// Out of line, so that the kernel has it once.
  template <int kTiles, class Block>
  FLYWHEEL_COLD void turn(Block block) const {
    const int live = rows.live(), each = group() + 2, units = (live + kRows - 1) / kRows * each;
    const TunedCache to = cache_of_head();
    for (int unit = block.warp(); unit < units; unit += kTileWarps) {
      const int from = unit / each * kRows, count = live - from < kRows ? live - from : kRows, which = unit % each;
      const auto first = static_cast<std::size_t>(rows.first + from);
      if (which <= group()) turn_head<kTiles>(block, first, count, which, to);
      else keep_values<kTiles>(block, first, count, to);
    }
  }

  template <int kTiles>
  struct Turned {
    float of[2][kTiles][4];  // rows lane / 4 and 8 behind it; dimensions lane % 4 * 4 and the three behind it of each tile
  };

  /// Query `which` of the group, or behind these the key, of `count` rows from `first` on.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void turn_head(Block& block, std::size_t first, int count, int which, const TunedCache& to) const {
    const bool is_key = which == group();
    const int head = is_key ? heads + kv_head : kv_head * group() + which, lane = block.lane(), dim = lane % 4 * 4;
    constexpr bool kAhead = kTiles <= 4;  // the angles are on their way beside the sums, where there are registers for both
    Turned<kTiles> mine = {};
    Angles<kTiles> angles;
    if constexpr (kAhead) angles = angles_of<kTiles>(first, count, lane);
    load<kTiles>(mine, first, count, lane, head);
    const float* const norm = is_key ? k_norm : q_norm;
    if (norm) norm_rows<kTiles>(block, mine, norm + dim);
    if constexpr (!kAhead) angles = angles_of<kTiles>(first, count, lane);
    rotate<kTiles>(mine, angles, is_key ? 1.f : query_scale());
    TilePart parts[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) parts[t] = pack(mine.of[0][t], mine.of[1][t]);
    if (is_key) {
      // Rows that are not there are the first one again: nobody attends to their positions before they have keys of their own.
      keep<kTiles>(parts, static_cast<int>(rows.stretch->first + first), lane, to.keys);
      return;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane / 4 + 8 * r;
      if (row >= count) continue;
      Half* const out = query(first + static_cast<std::size_t>(row), head) + dim;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        struct alignas(8) Four {
          std::uint32_t pairs[2];
        };
        *reinterpret_cast<Four*>(out + 16 * t) = {parts[t].registers[r], parts[t].registers[2 + r]};
      }
    }
  }
  /// A lane's part of a tile of the cache: four values of two rows, or of two columns.
  FLYWHEEL_TASK static TilePart pack(const float (&v)[4], const float (&w)[4]) {
    return {{round_two_to_half(v[0], v[1]), round_two_to_half(w[0], w[1]), round_two_to_half(v[2], v[3]),
             round_two_to_half(w[2], w[3])}};
  }
  /// See TunedCache::key_at() and value_at().
  template <int kTiles>
  FLYWHEEL_TASK static void keep(const TilePart (&parts)[kTiles], int position, int lane, Half* to) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      reinterpret_cast<TilePart*>(to + TunedCache::tile(position, 16 * t, 16 * kTiles))[lane] = parts[t];
  }

  /// add(part) for each part of the sums. One copy of the code: see tuning.md for what more of it takes.
  template <class Add>
  FLYWHEEL_TASK void add_parts(const Add& add) const {
    const std::size_t apart = static_cast<std::size_t>(qkv.rows) * width();
    FLYWHEEL_ROLLED
    for (int part = 0; part < qkv.count; ++part) add(qkv.values + static_cast<std::size_t>(part) * apart);
  }
  /// Of rows that are not there, the first one.
  template <int kTiles>
  FLYWHEEL_TASK void load(Turned<kTiles>& to, std::size_t first, int count, int lane, int head) const {
    struct alignas(16) Quad {
      float of[4];
    };
    add_parts([&](const float* part) {
      Quad quads[2][kTiles];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = lane / 4 + 8 * r < count ? lane / 4 + 8 * r : 0;
        const float* const from = part + place(first + static_cast<std::size_t>(row), head) + lane % 4 * 4;
#pragma unroll
        for (int t = 0; t < kTiles; ++t) quads[r][t] = *reinterpret_cast<const Quad*>(from + 16 * t);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int i = 0; i < 4; ++i) to.of[r][t][i] += quads[r][t].of[i];
    });
  }
  /// `norm`: of the lane's first dimension.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void norm_rows(const Block& block, Turned<kTiles>& mine, const float* norm) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float squares = 0;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) squares = std::fma(mine.of[r][t][i], mine.of[r][t][i], squares);
      squares += block.shuffle_xor(squares, 1);
      squares += block.shuffle_xor(squares, 2);
      const float scale = inverse_sqrt(squares * reciprocal(static_cast<float>(16 * kTiles)) + eps);
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) mine.of[r][t][i] *= scale * norm[16 * t + i];
    }
  }
  struct alignas(16) TwoAngles {
    float cosine, sine, next_cosine, next_sine;
  };
  /// Of a lane's values: those of each row's position.
  template <int kTiles>
  struct Angles {
    TwoAngles of[2][kTiles / 2][2];
  };
  template <int kTiles>
  FLYWHEEL_TASK Angles<kTiles> angles_of(std::size_t first, int count, int lane) const {
    Angles<kTiles> found;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane / 4 + 8 * r < count ? lane / 4 + 8 * r : 0;
      const auto* const all = reinterpret_cast<const TwoAngles*>(turn_of(first + static_cast<std::size_t>(row)));
#pragma unroll
      for (int t = 0; t < kTiles / 2; ++t)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) found.of[r][t][pair] = all[8 * t + lane % 4 * 2 + pair];
    }
    return found;
  }
  /// By the angles, times `by`.
  template <int kTiles>
  FLYWHEEL_TASK static void rotate(Turned<kTiles>& mine, const Angles<kTiles>& angles, float by) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int t = 0; t < kTiles / 2; ++t)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          const TwoAngles& two = angles.of[r][t][pair];
          turn_pair(mine.of[r][t][2 * pair], mine.of[r][t + kTiles / 2][2 * pair], two.cosine * by, two.sine * by);
          turn_pair(mine.of[r][t][2 * pair + 1], mine.of[r][t + kTiles / 2][2 * pair + 1], two.next_cosine * by,
                    two.next_sine * by);
        }
  }
  FLYWHEEL_TASK static void turn_pair(float& a, float& b, float cosine, float sine) {
    const float turned = a * cosine - b * sine;
    b = b * cosine + a * sine;
    a = turned;
  }
  /// The value head of `count` rows from `first` on; see TunedCache::value_at(). Rows that are not there as in turn_head().
  template <int kTiles, class Block>
  FLYWHEEL_TASK void keep_values(const Block& block, std::size_t first, int count, const TunedCache& to) const {
    const int lane = block.lane(), head = heads + kv_heads + kv_head;
    float values[kTiles][2][4] =
        {};  // dimensions lane / 4 and 8 behind it; positions lane % 4 * 2, its neighbour, 8 behind them
    add_parts([&](const float* part) {
      float some[kTiles][2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int wanted = lane % 4 * 2 + i % 2 + i / 2 * 8, row = wanted < count ? wanted : 0;
        const float* const from = part + place(first + static_cast<std::size_t>(row), head) + lane / 4;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int d = 0; d < 2; ++d) some[t][d][i] = from[16 * t + 8 * d];
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int d = 0; d < 2; ++d)
#pragma unroll
          for (int i = 0; i < 4; ++i) values[t][d][i] += some[t][d][i];
    });
    TilePart parts[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) parts[t] = pack(values[t][0], values[t][1]);
    keep<kTiles>(parts, static_cast<int>(rows.stretch->first + first), lane, to.values);
  }

  /// One thread.
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block) const {
    float* const turned = block.template scratch<float>(head_dim);
    if (!turned) return;
    const TunedCache to = cache_of_head();
    const int live = rows.live();
    for (int i = 0; i < live; ++i) {
      const auto row = static_cast<std::size_t>(rows.first + i);
      const int position = static_cast<int>(rows.stretch->first + row);
      for (int which = 0; which < group(); ++which) {
        const int head = kv_head * group() + which;
        turn_values(head_of(row, head), q_norm, turn_of(row), head_dim, eps, turned);
        for (int d = 0; d < head_dim; ++d) put(query(row, head)[d], turned[d] * query_scale());
      }
      turn_values(head_of(row, heads + kv_head), k_norm, turn_of(row), head_dim, eps, turned);
      const HeadOfSums value = head_of(row, heads + kv_heads + kv_head);
      for (int d = 0; d < head_dim; ++d) {
        put(to.keys[TunedCache::key_at(position, d, head_dim)], turned[d]);
        put(to.values[TunedCache::value_at(position, d, head_dim)], value(d));
      }
    }
  }
  FLYWHEEL_TASK HeadOfSums head_of(std::size_t row, int head) const { return {qkv, row, head, heads + 2 * kv_heads, head_dim}; }
  FLYWHEEL_TASK static void put(Half& to, float value) { to.bits = static_cast<std::uint16_t>(round_to_half(value)); }
};
static_assert(sizeof(PrefillTurn) <= kTaskArgBytes);

}  // namespace llama
