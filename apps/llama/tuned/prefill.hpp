// Prompts by matrix products: many positions of a text at once, through all layers.
#pragma once

#include <deque>

#include "apps/llama/tuned/rows_builder.hpp"

namespace llama {

/*  PrefillEmbed -> [ PrefillNorm -> qkv -> PrefillTurn -> PrefillAttend -> output -> PrefillNorm -> gated -> down ]
 *    16 rows         16 rows       tile    16..128 rows,  16..128 rows,    tile      16 rows       tile     tile
 *                                          a key head     a head
 *
 *  The part in brackets once for each layer, of the last one up to PrefillTurn. Each is a phase. What split tiles of products
 *  leave is added up by the tasks behind them. Where a prompt ends its last row goes on alone:
 *
 *  PrefillTail -> PrefillAttend -> output -> PrefillNorm -> gated -> down -> PrefillNorm -> logits -> PrefillChoose  */
/// Reads stretches of prompts into the caches of `texts`.
class Prefill {
 public:
  /// All must outlive it. `texts`: of a model that knows() says yes to.
  Prefill(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts);
  Prefill(const Prefill&) = delete;
  Prefill& operator=(const Prefill&) = delete;

  /// Whether there are tasks for such a model: for heads of its size.
  static bool knows(const Config& config);
  /// Whether a run may choose the token behind a prompt.
  static bool chooses(const Config& config);
  /// Device memory that it takes, but for the graphs.
  static std::size_t bytes(const Config& config, int context);

  /// The positions that the next run reads of `count` that are left of a prompt: all, or a part. Whether a part is short says
  /// nothing of its bits. `short_parts`: others wait.
  static std::uint32_t next_count(std::uint32_t count, bool short_parts);
  /// Whether a prompt of so many tokens is of few rows. It is read in one run, by products that are cut for few rows; others by
  /// products whose bits do not depend on the parts in which they are read.
  static bool is_few(std::size_t tokens);
  /// Starts reading positions first..end-1 of a text, `first` a multiple of 16; wait for the run before the next one. `few`:
  /// see is_few(). `chooses`: the prompt ends there, and its text is in `texts`: the token behind it is chosen as a step of the
  /// decode would, and streamed.
  Run submit(std::uint32_t text, std::uint32_t first, std::uint32_t end, bool few, bool chooses, bool is_traced);

 private:
  struct Size {
    int rows = 0;
    bool whole = false;
    std::deque<flywheel::Product> products;
    Executable read;
  };

  Runtime& runtime_;
  RowsMemory memory_;
  RowsMemory tail_;         // of the last position, behind the caches
  std::deque<Size> sizes_;  // by rows
};

}  // namespace llama
