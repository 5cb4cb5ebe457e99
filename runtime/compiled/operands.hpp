// Operand streams: what a worker's tasks read and no task writes, laid out in the order of use.
//
// A task type with operands says how many bytes they take and packs them once, when its graph is compiled:
//
//   std::uint32_t operand_bytes() const;
//   template <class Block> FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const;
//
// In a compiled run its compute part takes them page by page; they were fetched long before, while other tasks ran:
//
//   template <class Block, class Operands>
//   __device__ void compute(Block& block, Operands& operands) const { const unsigned char* page = operands.next(); ... }
//
// Operands that other tasks write are dependent: fetched once the task's predecessors are done, into pages after the
// constant ones, while the compute warps are still at the task before. Each fetch begins a page, pointers and sizes are
// multiples of 16:
//
//   std::uint32_t dependent_pages() const;  // pages_of() each piece, added up
//   template <class Fetch> FLYWHEEL_TASK void dependents(Fetch&& fetch) const { fetch(pointer, bytes); ... }
//
// Graph::add() asks for all of this on the host, too, and load() checks it: it follows from the task's members alone.
//
// Types that differ only in their ends may share the code of their compute parts, which the GPU caches once: they derive
// from one base that has it, say `using ComputeAs = Base;`, and the base comes first.
//
// Each page taken is given back, and no more than that. A CPU always looks, and Options::check_operands makes a GPU look: a
// task that does otherwise fails by name. Where nobody looks, pages that a body keeps are given back for it if next() gave
// them; other mistakes end in a report of who waited for what.
//
// The portable body, operator(), reads the originals; it is what dynamic runs call, and the oracle of the tuned parts.
//
// A GPU task may also leave its end to a warp of its own, while the compute warps go on to the next task:
//
//   compute:  float* sums = block.template hand<float>(); ... write a share of it ...; block.pass_on();
//   template <class Block> __device__ void store(Block& block) const {
//     while (const float* sums = block.template take<float>()) { ... write results ...; block.give_back(); }
//   }
//
// A task that hands nothing over may use the places of handoffs as scratch memory: block.borrow_handoffs(). What Options::scratch_bytes
// does not take is left for pages.
//
// An early task begins before the tasks before it are done: `static constexpr bool kEarly = true;`. Its compute and store
// parts do what they can, and wait themselves before they touch what others wrote: block.await() until those are done;
// or block.await_sent() until they have said block.sent(), where what is needed comes in stamped words (stamped.hpp).
// Both are false if one of those has failed: then return, the task counts as skipped. Its last part need not have waited.
// Who looks for stamped words with block.spin() need not have waited either: that ends, too, when one of those has failed.
// Some warps may have found their words by then, so a part that has not waited hands over as often as it always does.
//
// All warps of a compute part take pages and hand over in the same order: there are a few places for either, and warps
// that hold one kind while they wait for the other would wait for ever (until the time limit names them).
#pragma once

#include "../base/status.hpp"
#include "compiled.hpp"
#include "../dynamic/task_list.hpp"

namespace flywheel {

/// What the load role brings at once and one wait is for. Each costs the warps that wait a fixed 0.14 us: with 16 KB
/// Llama-3.2-1B took 0.759 ms a token in place of 0.753 with 32 (both on an H200). 26 KB are 16,384 weights of 13 bits.
inline constexpr std::uint32_t kPageBytes = 26u << 10;
/// What a compute part hands over to its store part at once, and how often it can before the first is taken.
inline constexpr std::uint32_t kHandoffBytes = 4608;
inline constexpr std::uint32_t kHandoffs = 2;
/// Of shared memory. One page is read while another is on its way.
inline constexpr std::uint32_t kFewestPages = 2;
inline constexpr std::uint32_t kMostPages = 16;
/// Each task's operands begin on a line of their own.
inline constexpr std::uint32_t kOperandAlignment = 128;

FLYWHEEL_TASK constexpr std::uint32_t padded_operands(std::uint32_t bytes) {
  return (bytes + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
}
FLYWHEEL_TASK constexpr std::uint32_t pages_of(std::uint32_t operand_bytes) {
  return (operand_bytes + kPageBytes - 1) / kPageBytes;
}

/// Pieces of memory that a task may name as dependent.
inline constexpr std::uint32_t kMostDependents = 16;

/// A CPU task's operands, where they lie: its part of the stream, then the pieces it depends on. Nothing goes wrong here if
/// a body takes too many pages or keeps some; on a GPU it would, so end() tells.
class CpuOperands {
 public:
  /// `spare` is what take() gives after the last page.
  FLYWHEEL_TASK CpuOperands(const unsigned char* at, std::uint32_t bytes, const unsigned char* spare = nullptr) : spare_(spare) {
    add(at, bytes);
  }
  FLYWHEEL_TASK void add(const void* at, std::uint32_t bytes) {
    if (!bytes) return;
    if (count_ > kMostDependents) return note(Status::operands_misnamed);
    pieces_[count_++] = {static_cast<const unsigned char*>(at), bytes};
  }

  /// The next page: kPageBytes of the task's operands, or what is left of them or of a piece. Null after the last.
  FLYWHEEL_TASK const unsigned char* next() {
    if (piece_ == count_) return nullptr;
    if (++held_ > kMostPages) note(Status::operands_hoarded);  // no GPU has as many
    const unsigned char* page = pieces_[piece_].at + done_;
    const std::uint32_t left = pieces_[piece_].bytes - done_;
    done_ += kPageBytes;
    if (left <= kPageBytes) ++piece_, done_ = 0;
    return page;
  }
  /// The page that next() gave first, of those not given back yet, may be overwritten.
  FLYWHEEL_TASK void give_back() {
    if (held_) --held_;
    else note(Status::operands_overdrawn);
  }

  /// The same for those who know how many pages there are and hold one at a time.
  FLYWHEEL_TASK const unsigned char* take() {
    const unsigned char* page = next();
    if (page) return page;
    note(Status::operands_overrun);
    return spare_;
  }
  FLYWHEEL_TASK void drop() { give_back(); }

  /// Library use: when the body has ended. What it did first that would go wrong on a GPU, or Status::ok.
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

  Piece pieces_[kMostDependents + 1];
  std::uint32_t count_ = 0, piece_ = 0, done_ = 0;
  std::uint32_t held_ = 0;  // pages taken and not given back
  const unsigned char* spare_;
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

}  // namespace flywheel
