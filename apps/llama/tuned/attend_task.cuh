// What attention works on, and its portable body: one thread for each position or dimension.
#pragma once

#include "apps/llama/tuned/head_values.cuh"
#include "apps/llama/tuned/partials.cuh"

namespace llama {

/// What a step of attention does, as far as that is known at compile time: it appends the step's key and value to the cache;
/// layers may have windows.
struct PlainStep {
  static constexpr bool appends = true, windowed = false;
};
struct AnyStep {
  bool appends;
  static constexpr bool windowed = true;
};

/// The `count` query heads from `head` on, which are of one key and value head. In a step of the decode each sequence is a
/// text, and the part that holds the step's position also puts the step's key and value into the cache, if it is to: each part
/// that holds it makes them itself and does not read them there. In a step that reads a prompt each is a position of one text,
/// and the keys and values of all are in the cache by then: see prompt.cuh.
struct AttendTask {
  const Stamped* qkv;  // [sequences][heads + 2 kv_heads][head_dim], before norm and rotation
  Partials partials;
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null
  const float* k_norm;
  const StepState* states;
  Stamped* results;  // see PackedOutput
  float eps;
  std::int32_t positions;  // the cache has room for, a multiple of 16
  std::uint8_t sequence, kv_heads, kv_head, head;
  std::uint8_t count : 7, caches_step : 1;  // one of the tasks of a key and value head does
  std::uint8_t split;
  std::uint16_t window;  // the last positions alone are attended to; 0: all

  static constexpr int kMostWindow = 65535;

 protected:
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block, const AnyStep& step) const {
    const Span part = span(step);
    if (part.last <= part.first) return;
    float* turned = block.template scratch<float>(dims());
    float* in = block.template scratch<float>(dims());
    float* weights = block.template scratch<float>(part.last - part.first);
    float* made = block.template scratch<float>(2 * dims());
    if (!turned || !in || !weights || !made) return;
    const TunedCache mine = cache_of(text(step.appends));
    const bool makes = step.appends && part.has_step();
    if (makes) {
      turn_head(block, key(), k_norm, turn_of(part.position), dims(), eps, in, turned);
      make_step(block, turned, made);
      if (caches_step) append_to_cache(block, mine, part.position, dims(), turned, value());
    }
    const StepValues own{makes ? part.position : -1, made, made + dims()};
    for (int h = 0; h < count; ++h) {
      turn_head(block, query(h), q_norm, turn_of(part.position), dims(), eps, in, turned);
      portable_head(block, mine, own, h, part, turned, weights);
    }
    portable_join(block, part.used);
  }

  /// Read once: each look at global memory is a trip to L2, because every acquire empties L1.
  template <class Step>
  FLYWHEEL_TASK Span span(const Step&) const {
    const std::uint32_t position = states[sequence].position;
    const int all = static_cast<int>(position) + 1;
    if constexpr (Step::windowed) {
      const int begin = window && all > window ? all - window : 0, of_tile = begin / 16 * 16;
      const std::uint32_t last = position - static_cast<std::uint32_t>(of_tile);  // from there on
      const int share = partials.share(last), first = of_tile + split * share;
      return {static_cast<int>(position), first, first + share < all ? first + share : all, Partials::used(last, share), begin};
    } else {
      const int share = partials.share(position), first = split * share;
      return {static_cast<int>(position), first, first + share < all ? first + share : all, Partials::used(position, share)};
    }
  }
  FLYWHEEL_TASK int dims() const { return partials.head_dim; }
  FLYWHEEL_TASK const Stamped* row(int i) const { return qkv + ((partials.heads + 2 * kv_heads) * sequence + i) * dims(); }
  FLYWHEEL_TASK const Stamped* query(int i) const { return row(head + i); }
  FLYWHEEL_TASK const Stamped* key() const { return row(partials.heads + kv_head); }
  FLYWHEEL_TASK const Stamped* value() const { return row(partials.heads + kv_heads + kv_head); }
  /// Whose cache it is. Read with the span.
  FLYWHEEL_TASK int text(bool appends) const { return appends ? sequence : static_cast<int>(states[sequence].text); }
  /// The head's keys and values of a text.
  FLYWHEEL_TASK TunedCache cache_of(int text) const { return cache.head(text * kv_heads + kv_head, positions, dims()); }
  FLYWHEEL_TASK const float* turn_of(int position) const {
    return rope + static_cast<std::size_t>(position) * static_cast<std::size_t>(dims());
  }

  /// 1 / sqrt(head_dim), and log2(e): weights are powers of 2.
  FLYWHEEL_TASK float query_scale() const { return 1.44269504f * inverse_sqrt(static_cast<float>(dims())); }

 private:
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

  /// The step's key and value as the cache has them, if the part makes them.
  struct StepValues {
    int position;  // -1: it does not
    const float *key, *value;
  };
  template <class Block>
  FLYWHEEL_TASK void make_step(Block& block, const float* turned, float* to) const {
    const auto as_cached = [](float x) { return from_half(round_to_half(x)); };
    block.for_each(dims(), [&](int i) {
      to[i] = as_cached(turned[i]);
      to[dims() + i] = as_cached(look_at(value()[i]).value());
    });
    block.sync();
  }

  template <class Block>
  FLYWHEEL_TASK void portable_head(Block& block, const TunedCache& of, const StepValues& own, int h, const Span& part,
                                   const float* turned, float* weights) const {
    const int from = part.first > part.begin ? part.first : part.begin, n = part.last - from;
    const int to = partials.index(sequence, head + h, split);
    const auto larger = [](float a, float b) { return a > b ? a : b; };
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    block.for_each(n, [&](int p) {
      float score = 0;
      for (int i = 0; i < dims(); ++i)
        score +=
            turned[i] * (from + p == own.position ? own.key[i] : to_float(of.keys[TunedCache::key_at(from + p, i, dims())]));
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
        out += weights[p] *
               (from + p == own.position ? own.value[i] : to_float(of.values[TunedCache::value_at(from + p, i, dims())]));
      put_stamped(partials.values(to)[i], out, block.stamp());
    });
    if (block.leader()) {
      put_stamped(partials.scale(to).first, largest, block.stamp());
      put_stamped(partials.scale(to).second, sum, block.stamp());
    }
    block.sync();
  }
};

}  // namespace llama
