// What compute and store parts of tasks get in a checked run (Options::check_operands): the types of page.cuh, block.cuh and
// parts.cuh with counts of what a body does with pages, handoffs and sent(). compiled.cuh includes it.
//
// The first mistake fails the task by name. A mistake that would stop other warps is put right, so that they run on. The
// types are separate, so unchecked runs pay nothing.
#pragma once

#include "handoff.cuh"
#include "page.cuh"
#include "parts.cuh"

namespace flywheel::detail {

inline constexpr std::uint32_t kCheckBarrier = 2;

/// One thread: fails the task. A failure that the body itself reported comes first, since a body that has failed may leave
/// pages and handoffs as they are.
__device__ inline void note_mistake(TaskContext& context, Status mistake) {
  // Relaxed: the first code stands. Pairs with the leader's read in store_role(), ordered by `computed` or program order.
  ThreadPlatform::block(context.outcome.code).compare_exchange(0, static_cast<std::uint32_t>(mistake), Order::relaxed);
}
__device__ inline void note_mistake_of_warp(TaskContext& context, Status mistake) {
  if (threadIdx.x % 32 == 0) note_mistake(context, mistake);
}

/// A warp: polls until ready() is true in all lanes, but no longer than Options::check_budget after the tasks before have
/// sent. False otherwise. Lane 0 reads the clock for all lanes: lanes that decided one by one would wait for each other.
template <class Ready>
__device__ bool spin_checked(TaskContext& context, std::uint32_t number, Ready&& ready) {
  std::uint64_t limit = ~std::uint64_t{0};
  for (std::uint32_t spins = 1; !__all_sync(0xffffffffu, ready()); ++spins) {
    if (spins % 64) continue;
    ThreadPlatform::pause(spins);
    // Relaxed: pairs with report_wait() or the host's copy; a warp that sees it only leaves.
    const bool aborted = ThreadPlatform::device(context.dev->control->broadcast.abort).load(Order::relaxed) != 0;
    if (__any_sync(0xffffffffu, aborted || is_called_off(number))) return false;
    if (limit == ~std::uint64_t{0} && has_come(number)) limit = ThreadPlatform::now_ns() + context.dev->check_ns;
    if (!__shfl_sync(0xffffffffu, ThreadPlatform::now_ns() > limit, 0)) continue;
    note_mistake_of_warp(context, Status::words_missing);
    return false;
  }
  return true;
}

/// Whether a part of instruction `number` calls sent() for the first time. A second call must not be signaled: tasks that
/// wait would count it as the call of another task.
__device__ inline bool may_signal_sent(TaskContext& context, std::uint32_t number) {
  auto sent_calls = ThreadPlatform::block(roles_shared().notes.sent_calls[number % kRoleSlots]);
  // Relaxed: only the number of calls counts. Pairs with the calls of the task's other part, and with the reset in
  // end_store(), which `stored` and `ready` order before the next task in this slot.
  const bool first = sent_calls.fetch_add(1, Order::relaxed) == 0;
  if (!first) note_mistake(context, Status::sent_twice);
  return first;
}

/// All compute warps, when their bodies have ended: a warp with fewer handoffs than another makes up for it. Else the store
/// part would take that warp's next handoffs for this task's.
__device__ inline void even_handoffs(RolesShared& roles, TaskContext& context) {
  const std::uint32_t warp = threadIdx.x / 32 - kFirstComputeWarp;
  ptx::named_barrier(kCheckBarrier, kComputeThreads);  // all warps have stopped counting
  const std::uint32_t mine = roles.handoffs[warp].count;
  std::uint32_t most = 0;
  for (const WarpHandoffs& other : roles.handoffs) most = other.count > most ? other.count : most;
  ptx::named_barrier(kCheckBarrier, kComputeThreads);  // all warps have read the counts
  if (mine != most) note_mistake_of_warp(context, Status::handoffs_mismatched);
  for (std::uint32_t count = mine; count < most; ++count) {
    acquire_handoff();
    producer_commit();
  }
  if (threadIdx.x % 32 == 0) roles.notes.holding[warp] = 0;
  __syncwarp();  // all lanes see it
}

/// PageOperands that keep a bit for each page that the warp holds.
class CheckedOperands {
 public:
  __device__ CheckedOperands(std::uint32_t page_count, std::uint32_t take, std::uint32_t parity)
      : pages_(page_count, take, parity),
        page_count_(page_count) {}
  __device__ std::uint32_t slot() const { return pages_.slot(); }
  __device__ std::uint32_t parity() const { return pages_.parity(); }

  /// Null after the last page; a body that asks again has missed that. If the warp still holds the page in the next slot, the
  /// load role could never fill it: that page is returned first.
  __device__ const unsigned char* consumer_wait() {
    if (left_ == 0) {
      if (told_end_) note(Status::operands_overrun);
      told_end_ = true;
      return nullptr;
    }
    const std::uint32_t slot = pages_.slot();
    if (holds(slot)) {
      note(Status::operands_hoarded);
      release(slot);
    }
    --left_;
    held_ |= 1u << slot;
    return pages_.consumer_wait();
  }
  /// Returns the page taken first, of those that the warp holds: slots are taken in turn.
  __device__ void consumer_release() {
    std::uint32_t slot = pages_.slot();
    for (std::uint32_t i = 0; i < page_count_ && !holds(slot); ++i) slot = slot + 1 == page_count_ ? 0 : slot + 1;
    release(slot);
  }
  /// Fails the task if it has taken pages already.
  __device__ void renew() {
    CheckedOperands anew = PageOperands::of_warp<CheckedOperands>();
    if (anew.left_ != left_ || held_) return note(Status::operands_renewed);
    *this = anew;
  }

  // Library use: called around each task.
  __device__ void begin(RoleSlot& slot) {
    left_ = pages_of(slot.instruction.operand_bytes) + slot.instruction.dependent_pages;
    context_ = &slot.context;
    pages_.begin(slot);
  }
  __device__ void end() {
    if (held_) note(Status::operands_kept);
    while (held_) consumer_release();
    while (left_ && consumer_wait()) consumer_release();
  }

 private:
  __device__ bool holds(std::uint32_t slot) const { return held_ >> slot & 1; }
  __device__ void release(std::uint32_t slot) {
    if (!holds(slot)) return note(Status::operands_overdrawn);
    held_ &= ~(1u << slot);
    PageOperands::return_page(slot);
  }
  __device__ void note(Status mistake) const { detail::note_mistake_of_warp(*context_, mistake); }

  PageOperands pages_;
  std::uint32_t page_count_;
  std::uint32_t left_ = 0;  // pages of the task not taken yet
  std::uint32_t held_ = 0;  // bit s: the page in slot s
  bool told_end_ = false;   // consumer_wait() has returned null
  TaskContext* context_ = nullptr;
};
static_assert(kMostPages <= 32, "a bit for each page");

/// GpuBlock for the compute parts of checked runs.
template <class List>
class CheckedBlock : public GpuBlock<List> {
 public:
  using GpuBlock<List>::GpuBlock;

  template <class T>
  __device__ T* producer_acquire() {
    if (holding() == kBorrowed) detail::note_mistake_of_warp(*this->context_, Status::handoffs_mismatched);
    T* const place = static_cast<T*>(detail::acquire_handoff());
    __syncwarp();  // all lanes have read `holding` before lane 0 writes it
    if (this->lane() == 0) holding() = kHolding;
    __syncwarp();  // all lanes see it
    return place;
  }
  __device__ void producer_commit() {
    const bool has_place = holding() == kHolding;
    __syncwarp();  // all lanes have read it before lane 0 writes it; the barriers in producer_commit() show them what it wrote
    if (!has_place) return detail::note_mistake_of_warp(*this->context_, Status::handoffs_mismatched);
    if (this->lane() == 0) holding() = 0;
    detail::producer_commit();
  }
  __device__ void borrow_handoffs() {
    GpuBlock<List>::borrow_handoffs();
    if (this->lane() == 0) holding() = kBorrowed;
    __syncwarp();  // all lanes see it
  }
  __device__ void sent() const {
    if (this->number_ != kNoInstruction && detail::may_signal_sent(*this->context_, this->number_)) GpuBlock<List>::sent();
  }
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin_checked(*this->context_, this->number_, ready);
  }

 private:
  static constexpr std::uint32_t kHolding = 1, kBorrowed = 2;
  __device__ std::uint32_t& holding() const { return roles_shared().notes.holding[this->warp()]; }
};

/// StoreBlock for the store parts of checked runs.
template <class List>
class CheckedStoreBlock : public StoreBlock<List> {
 public:
  using StoreBlock<List>::StoreBlock;

  __device__ void sent() const {
    __syncwarp();  // the leader signals after all lanes have put their words
    if (this->leader() && detail::may_signal_sent(*this->context_, this->consumer_.number())) this->consumer_.signal_sent();
  }
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin_checked(*this->context_, this->consumer_.number(), ready);
  }
  template <class T>
  __device__ const T* consumer_wait() {
    if (this->consumer_.holds()) note(), StoreBlock<List>::consumer_release();
    return StoreBlock<List>::template consumer_wait<T>();
  }
  __device__ void consumer_release() {
    if (this->consumer_.holds()) StoreBlock<List>::consumer_release();
    else note();
  }

 private:
  __device__ void note() const { detail::note_mistake_of_warp(*this->context_, Status::handoffs_mismatched); }
};

/// The types for checked runs, see PlainParts.
template <class Tasks>
struct CheckedParts {
  using List = Tasks;
  using Operands = CheckedOperands;
  using Block = CheckedBlock<Tasks>;
  using StoreBlock = CheckedStoreBlock<Tasks>;

  /// All threads of a compute warp, when the compute part has ended.
  __device__ static void end_compute(RolesShared& roles, RoleSlot& slot) {
    if (slot.command == RoleCommand::run) detail::even_handoffs(roles, slot.context);
  }
  /// The store warp, when both parts of instruction `n` have ended.
  __device__ static void end_store(RolesShared& roles, std::uint32_t n) {
    // Plain: the calls before are ordered by `computed`, those of the next task in this slot by `stored` and `ready`.
    if (threadIdx.x % 32 == 0) roles.notes.sent_calls[n % kRoleSlots] = 0;
  }
};

}  // namespace flywheel::detail
