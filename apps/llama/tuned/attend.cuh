// Attention by tensor cores. The softmax is in attend_warp.cuh; this is what comes before it and after it. Of the query heads
// of a key and value head 4 go through it at once, the next 4 after them.
#pragma once

#include "apps/llama/tuned/attend_area.cuh"
#include "apps/llama/tuned/attend_task.cuh"
#include "apps/llama/tuned/join.cuh"

namespace llama {

struct TunedAttend : AttendTask {
  static constexpr bool kEarly = true;

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable(block, {.appends = true});
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    compute_part(block, operands, PlainStep{});
  }

  static constexpr std::uint32_t kHeadSizeUnknown = 2;

  /// That the compute part takes; 0 for heads of a size that it does not know.
  static constexpr int scratch_bytes(int head_dim) { return bytes_of<2, 4, 5, 6, 8, 16>(head_dim); }
  static constexpr bool knows(int head_dim) { return scratch_bytes(head_dim) > 0; }

 protected:
  /// The sizes of most models have a way of their own for plain steps. All else is out of the way of the loops of tasks.
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute_part(Block& block, Operands& operands, const PlainStep& step) const {
    if (partials.head_dim == 64 || partials.head_dim == 128) {
      Block copy = block;  // for the call: the caller's own stays in registers
      if (partials.head_dim == 64) attend_all<4>(copy, step);
      else attend_all<8>(copy, step);
    } else {
      attend_any(block, {.appends = true});
    }
    // Not kept over the call, for what is kept in registers there is spilled in the loops of all tasks.
    operands.renew();
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute_part(Block& block, Operands& operands, const AnyStep& step) const {
    attend_any(block, step);
    operands.renew();
  }

 private:
  template <int... kTiles>
  static constexpr int bytes_of(int head_dim) {
    return (0 + ... + (head_dim == kTiles * 16 ? static_cast<int>(sizeof(AttendArea<kTiles>)) : 0));
  }

  /// Query heads that go through together.
  struct Heads {
    int first, count;
  };
  FLYWHEEL_TASK Heads heads_from(int done) const {
    return {head + done, count - done < kHeadsTogether ? count - done : kHeadsTogether};
  }

  /// What a warp makes ready: warps 0..3 a query each; where the step appends, the next one its key, and one its value, which
  /// does not turn.
  FLYWHEEL_TASK HeadSource source(int warp, const Heads& some, bool appends) const {
    if (warp < some.count) return {row(some.first + warp), q_norm, query_scale(), true};
    if (appends && warp == kHeadsTogether) return {key(), k_norm, 1, true};
    if (appends && warp == kHeadsTogether + 1) return {value(), nullptr, 1, false};
    return {nullptr, nullptr, 1, false};
  }

  /// Four heads need no loop: it would take registers of those four.
  template <int kTiles, class Block, class Step>
  FLYWHEEL_COLD void attend_more(Block& block, const Step step) const {
    for (int done = 0; done < count; done += kHeadsTogether) attend<kTiles>(block, done, step);
  }
  template <int kTiles, class Block, class Step>
  FLYWHEEL_TASK void attend_all(Block& block, const Step& step) const {
    if (count <= kHeadsTogether) attend<kTiles>(block, 0, step);
    else attend_more<kTiles>(block, step);
  }

  template <class Block>
  FLYWHEEL_COLD void attend_any(Block block, const AnyStep step) const {
    switch (partials.head_dim) {
      case 32:
        return attend_all<2>(block, step);
      case 64:
        return attend_all<4>(block, step);
      case 80:
        return attend_all<5>(block, step);
      case 96:
        return attend_all<6>(block, step);
      case 128:
        return attend_all<8>(block, step);
      case 256:
        return attend_all<16>(block, step);
      default:
        block.fail(kHeadSizeUnknown);
    }
  }

  /// 1. What earlier passes left (where the step is, angles, the first keys) is fetched while this step's qkv are still being
  ///    made. Values come later, see WarpAttention::load_values().
  /// 2. Queries, the step's key and value are awaited, turned and put where all warps see them. Warps do not poll for them
  ///    before the first keys have come (0.663 ms a token against 0.669, see tuning.md). Where other tasks of the step append,
  ///    the first keys come after those.
  /// 3. Each warp weighs its positions. 4. The warps' sums are put together, and 5. those of all parts.
  template <int kTiles, class Block, class Step>
  FLYWHEEL_COLD void attend(Block& outside, const int done, const Step step) const {
    Block block = outside;  // in registers: local memory is a trip to L2 away after each acquire
    const int warp = block.warp();
    const Span part_of = span(step);
    if (part_of.last <= part_of.first) return end(block, done);  // the context is short: nobody reads this part
    const TunedCache head = cache_of(text(step.appends));
    HeadValues<FixedSize<kTiles>> values;
    const HeadSource from = source(warp, heads_from(done), step.appends);
    if (from.words) values.prepare(block, from, turn_of(part_of.position));
    const auto joins = join<kTiles>(done).share(warp, part_of.used);
    WarpAttention<kTiles> mine(head.keys, head.values);
    const int first = part_of.first + warp * 16;
    if (!step.appends && !block.await()) return;
    mine.load_keys(block, first, part_of.last);
    block.sync();  // all warps are through with the last task's scratch
    block.borrow_handoffs();
    auto* const shared = block.template scratch<AttendArea<kTiles>>(1);
    if (!shared) return;  // here: a return waits for all loads, so that queries are looked for once the keys have come
    AttendArea<kTiles>& area = *block.in_scratch(shared);
    const PackedOutput packed{results, partials.sequences, partials.columns(), block.stamp()};
    if (from.words) values.load(block, from.words);
    mine.load_values(block, first, part_of.last);
    if (from.words) values.rotate(block, from, eps);
    if (warp < kHeadsTogether) area.put_query(block, values, block.warp());
    else if (from.words) area.put_step(block, values, warp - kHeadsTogether);
    block.sync();
    mine.take_queries(block, area.query);
    for (int at = first; at < part_of.last; at += mine.kAll) {
      if (step.appends && part_of.has_step()) mine.put_step(block, area.step, part_of.position, at);
      mine.template add<Step::windowed>(block, at, part_of);
    }
    mine.leave(block, area.left);
    block.sync();
    write(block, area, part_of.used, packed, heads_from(done));
    if (caches_step && warp >= kHeadsTogether && from.words && part_of.has_step())
      area.append(block, head, part_of.position, warp - kHeadsTogether);
    if (part_of.used > 1) join<kTiles>(done)(block, part_of.used, joins, packed);
    block.sync();
    end(block, done);
  }

  template <int kTiles>
  FLYWHEEL_TASK PartJoin<kTiles * 16> join(int done) const {
    const Heads some = heads_from(done);
    return {partials, some.first, some.count, sequence, split};
  }
  template <class Block>
  FLYWHEEL_TASK void end(Block& block, int done) const {
    if (done + kHeadsTogether >= count && block.leader()) block.sent();
  }

  /// All warps' sums together, to global memory: the result if there is no other part, or what join.cuh goes on with.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void write(Block& block, const AttendArea<kTiles>& area, int used, const PackedOutput& packed,
                           const Heads& some) const {
    constexpr int kDims = kTiles * 16;
    WarpsScale scale = area.scale(block);
    if (used == 1) scale.factor *= reciprocal(scale.weights);
    else if (block.warp() == 0 && block.lane() < some.count)
      Block::store_stamped_pair(&partials.scale(partials.index(sequence, some.first + block.lane(), split)).first,
                                {stamped(scale.largest, packed.stamp), stamped(scale.weights, packed.stamp)});
    area.for_each_sum(block, scale.factor, [&](int h, int dim, float sum) {
      // Neighbours go on together: where heads are no whole warps, all lanes do.
      const bool has = h < some.count;
      if (kDims % kLanes == 0 && !has) return;
      if (used == 1) packed.put(block, sequence, (some.first + h) * kDims + dim, {sum}, has);
      else if (has) put_stamped(partials.values(partials.index(sequence, some.first + h, split))[dim], sum, packed.stamp);
    });
  }
};
static_assert(sizeof(TunedAttend) <= kTaskArgBytes);

/// The same of a layer with a window.
struct TunedAttendWindow : TunedAttend {
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    compute_part(block, operands, AnyStep{.appends = true});
  }
};

}  // namespace llama
