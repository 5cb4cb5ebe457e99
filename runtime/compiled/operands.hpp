// Operands: what a task reads page by page, fetched ahead. Constant operands are written by no task, and packed at load() in
// the order of use; dependent operands are written by other tasks, and fetched in each pass. This is the manual of tuned tasks;
// the kernel's roles, the CPU workers and Graph::add() follow it.
//
// Constant operands. A task type with operands says how many bytes they take, and packs them once, when its graph is
// compiled:
//
//   std::uint32_t operand_bytes() const;
//   template <class Block> FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const;
//
// In a compiled run its compute part takes them page by page. They were fetched long before, while other tasks ran:
//
//   template <class Block, class Operands>
//   FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
//     while (const unsigned char* page = operands.consumer_wait()) { ... use it ...; operands.consumer_release(); }
//   }
//
// Dependent operands. Operands that other tasks write are fetched when the task's predecessors are done, into pages
// behind the constant ones, while the compute warps are still at the task before. Each fetch begins a page; pointers
// and sizes are multiples of 16:
//
//   std::uint32_t dependent_pages() const;  // pages_of() each piece, added up
//   template <class Fetch> FLYWHEEL_TASK void dependents(Fetch&& fetch) const { fetch(pointer, bytes); ... }
//
// Graph::add() calls all of these on the host, too, and load() checks what they say there. The sizes follow from the task's
// members alone; an address may be chosen on the device, among places of the same size (apps/16_dependent_operands).
//
// Shared code. Types that differ only in their ends may share the code of their compute parts, which the GPU then
// caches once: they derive from one base that has it, declare `using ComputeAs = Base;`, and name that base first.
//
// Pages. A task gives each page that it takes back, once. A CPU always checks this, a GPU does with
// Options::check_operands: a task that does otherwise fails and is named. Without the check, pages from consumer_wait() that a
// body keeps are given back for it; other mistakes end in a wait report.
//
// The portable body, operator(), reads the original operands. Dynamic runs call it, and it is the oracle of the tuned
// parts.
//
// Store part. A GPU task may leave its end to the store warp, while the compute warps go on to the next task:
//
//   compute:  float* sums = block.template producer_acquire<float>(); ... write a share of it ...; block.producer_commit();
//   template <class Block> requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
//     while (const float* sums = block.template consumer_wait<float>()) { ... write results ...; block.consumer_release(); }
//   }
//
// A task without handoffs may use their memory as scratch: block.borrow_handoffs(). Pages get what
// Options::scratch_bytes leaves.
//
// Early tasks. An early task begins before its predecessors are done: `static constexpr bool kEarly = true;`. Its compute
// and store parts do what they can, and wait themselves before they use what the predecessors wrote: block.await() waits
// until those are done; block.await_sent() waits until they have called block.sent(), for data in stamped words
// (stamped.hpp). Both are false if a predecessor has failed: the part then returns, and the task counts as skipped.
//
// The last part of the task need not wait. Neither does a part that polls stamped words with block.spin(), which also
// ends when a predecessor has failed. Some warps may have found their words by then, so a part that has not waited makes
// all its handoffs.
//
// Order. All warps of a compute part take pages and hand over in the same order. There are few places for either: warps
// that hold one kind while they wait for the other would wait until the time limit reports them.
#pragma once

#include "../base/status.hpp"
#include "../dynamic/task_list.hpp"
#include "compiled.hpp"

namespace flywheel {

/// A page: what the load role fetches at once and one wait is for. Each wait costs a fixed 0.14 us (H200), so smaller
/// pages were slower, see tuning.md. 26 KB are 16,384 weights of 13 bits.
inline constexpr std::uint32_t kPageBytes = 26u << 10;
/// A handoff: the bytes that a compute part hands to its store part at once, and how many fit before the first is
/// taken.
inline constexpr std::uint32_t kHandoffBytes = 4608;
inline constexpr std::uint32_t kHandoffs = 2;
namespace detail {
/// Pages that shared memory may hold. With two, one is read while the other is fetched.
inline constexpr std::uint32_t kFewestPages = 2;
inline constexpr std::uint32_t kMostPages = 16;
/// Each task's operands begin on a cache line of their own.
inline constexpr std::uint32_t kOperandAlignment = 128;

/// Bytes that a task's operands take in the stream.
FLYWHEEL_TASK constexpr std::uint32_t padded_operands(std::uint32_t bytes) {
  return (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}
}  // namespace detail

/// Pages that operands, or one dependent piece, take.
FLYWHEEL_TASK constexpr std::uint32_t pages_of(std::uint32_t operand_bytes) {
  return (operand_bytes + kPageBytes - 1) / kPageBytes;
}

/// The most pieces of memory that a task may name as dependent.
inline constexpr std::uint32_t kMostDependents = 16;

namespace detail {
/// A CPU task's operands, read where they lie: its part of the stream, then its dependent pieces. A body that takes too
/// many pages or keeps some does no harm here, but would on a GPU, so end() reports it.
class CpuOperands {
 public:
  /// `at`, `bytes`: the task's part of the stream.
  FLYWHEEL_TASK CpuOperands(const unsigned char* at, std::uint32_t bytes) { add(at, bytes); }
  /// Library use: adds a dependent piece.
  FLYWHEEL_TASK void add(const void* at, std::uint32_t bytes) {
    if (!bytes) return;
    if (count_ > kMostDependents) return note(Status::operands_misnamed);
    pieces_[count_++] = {static_cast<const unsigned char*>(at), bytes};
  }

  /// The next page: kPageBytes of the task's operands, or what is left of them or of a dependent piece. Null after the
  /// last.
  FLYWHEEL_TASK const unsigned char* consumer_wait() {
    if (piece_ == count_) return note_end();
    if (++held_ > kMostPages) note(Status::operands_hoarded);  // more than any GPU has
    const unsigned char* page = pieces_[piece_].at + done_;
    const std::uint32_t left = pieces_[piece_].bytes - done_;
    done_ += kPageBytes;
    if (left <= kPageBytes) ++piece_, done_ = 0;
    return page;
  }
  /// Gives back the page that consumer_wait() gave first among those still held: it may be overwritten.
  FLYWHEEL_TASK void consumer_release() {
    if (held_) --held_;
    else note(Status::operands_overdrawn);
  }

  /// Library use, after the body: its first mistake that would matter on a GPU, or Status::ok.
  FLYWHEEL_TASK Status end() {
    if (held_) note(Status::operands_kept);
    return fault_;
  }

 private:
  struct Piece {
    const unsigned char* at;
    std::uint32_t bytes;
  };
  FLYWHEEL_TASK void note(Status fault) {
    if (fault_ == Status::ok) fault_ = fault;
  }
  /// A body that asks again after the end has missed it.
  FLYWHEEL_TASK const unsigned char* note_end() {
    if (told_end_) note(Status::operands_overrun);
    told_end_ = true;
    return nullptr;
  }

  Piece pieces_[kMostDependents + 1];
  std::uint32_t count_ = 0, piece_ = 0, done_ = 0;
  std::uint32_t held_ = 0;  // pages taken and not given back
  bool told_end_ = false;   // consumer_wait() has returned null
  Status fault_ = Status::ok;
};

/// All threads of a block: packs the operands of a worker's whole stream.
template <class List, class Block>
FLYWHEEL_TASK void pack_stream(const WorkerStream& stream, Block& block) {
  unsigned char* to = stream.operands;
  for (std::uint32_t i = 0; i < stream.count; ++i) {
    const Instruction& instruction = stream.instructions[i];
    if (!instruction.operand_bytes) continue;
    List::pack(block.load(instruction.record), block, to);
    to += padded_operands(instruction.operand_bytes);
  }
}
}  // namespace detail

}  // namespace flywheel
