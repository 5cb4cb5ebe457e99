// The load role: one warp fetches the worker's operands into pages in shared memory. compiled.cuh includes it.
#pragma once

#include "dependents.cuh"
#include "page.cuh"

namespace flywheel::detail {

/// Fetches the worker's operand stream, pass after pass, as far ahead as there are free pages: constant operands depend on
/// no task. Pages for dependent operands keep their place in the ring and are filled once the task's predecessors have
/// ended; meanwhile the role fetches the rest of the stream behind them.
///
/// A page is fetched with two requests: one large request delays the polls of compute warps (0.657 ms a token against
/// 0.660 with one). Requests keep a pace (DeviceState::page_ticks) a little above the rate of the memory. A worker that
/// made up for a long wait by requesting more at once would only fill the memory's queues, in which the requests of other
/// workers wait, too (0.715 ms a token against 0.733). The measurements, and a prefetch to L2 that lost, are in tuning.md.
template <class List>
class LoadRole {
  using P = ThreadPlatform;

 public:
  __device__ LoadRole(RolesShared& roles, const DeviceState& dev)
      : roles_(roles),
        run_(roles.run),
        dev_(dev),
        bulk_(ptx::kHopper && dev.bulk_copies),
        writer_(run_.traced && lane() == 0 ? dev.trace : TraceBuffers{}, run_.worker, TraceRole::load) {}

  /// All lanes. Bulk copies need one lane only: then the others return at once.
  __device__ void operator()() {
    if (bulk_ && lane() != 0) return;
    // Proxy fence for the packed operands: their writer released them, and the control thread acquired them with the run.
    ptx::fence_global_for_bulk_copies();
    ptx::fence_shared_for_bulk_copies();  // for the reads of pages in the run before, which `begin` covers
    Place place(roles_, dev_, bulk_);
    if (bulk_ && !List::kHasDependents) load_passes<true>(place);
    else load_passes<false>(place);
    if constexpr (List::kHasDependents) {
      if (kept_.any()) wait_longer(&roles_.page_full[kept_.slot()], kept_.parity(), TraceKind::landing);
      if (kept_.any()) kept_.fill(false, bulk_);
    }
    // No copy may be under way when the roles have left the run. Acquire, block scope: pairs with the copies, and orders
    // them before the arrival on `left`.
    for (; place.under_way; --place.under_way, place.land.advance())
      wait_phase(roles_.page_full[place.land.slot()], place.land.parity(), WaitReason::page);
    writer_.close();
  }

 private:
  /// The state that every page needs, in an object of its own that stays in registers across calls. This one warp sets the
  /// pace of the memory: its work for a page must take only a fraction of the time that the page's bytes take.
  struct Place {
    __device__ Place(RolesShared& all, const DeviceState& dev, bool bulk)
        : roles(all),
          page_count(dev.page_count),
          window(dev.page_window),
          ticks(dev.page_ticks),
          bulk(bulk),
          fill(page_count),
          land(page_count),
          policy(ptx::read_once_policy()) {}
    RolesShared& roles;
    const std::uint32_t page_count, window, ticks;
    const bool bulk;
    RingCursor fill, land;
    const std::uint64_t policy;
    std::uint32_t under_way = 0;  // pages requested or kept, and not seen to land
    std::uint32_t filled = 0;     // pages used at least once, at most page_count
    std::uint32_t next_at = 0;    // tick at which the next request may be made
  };
  static constexpr std::uint32_t kRequestBytes = kPageBytes / 2;
  /// What poll() saw: the phase is complete, the kept pages may be filled, or the role is to leave.
  enum Polled : std::uint32_t { kThere, kAnnounced, kStop };

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  /// `kLean`: the role only makes bulk copies and waits for pages; there are no dependent operands.
  template <bool kLean>
  __device__ void load_passes(Place& place) {
    // Counted from this part's first pass, as the control role counts instructions; the two differ in no traced run.
    const std::uint32_t passes = run_.repeat - run_.first_pass;
    for (pass_ = 0; pass_ < passes && load_pass<kLean>(place); ++pass_) {}
  }

  /// Fetches the stream once. False if the run has ended before all passes, or the runtime was aborted.
  template <bool kLean>
  __device__ bool load_pass(Place& place) {
    const WorkerStream stream = run_.stream;
    if (stream.operand_task_count == 0) return false;
    const unsigned char* from = stream.operands;
    OperandTask next = stream.operand_tasks[0];
    for (std::uint32_t i = 0; i < stream.operand_task_count; ++i) {
      const OperandTask task = next;
      if (i + 1 < stream.operand_task_count) next = stream.operand_tasks[i + 1];  // loaded while this task's pages are fetched
      for (std::uint32_t at = 0; at < task.constant_bytes; at += kPageBytes) {
        const std::uint32_t left = task.constant_bytes - at, bytes = left < kPageBytes ? left : kPageBytes;
        if (!make_room<kLean>(place)) return false;
        // As much as possible is done before the wait for an earlier page: any delay between the landing of that page and the
        // next request leaves the memory idle. expect_bytes(): release, block scope; pairs with PageOperands::consumer_wait().
        if (kLean || place.bulk) ptx::expect_bytes(place.roles.page_full[place.fill.slot()], bytes);
        const bool goes_on = make_way<kLean>(place);
        ask<kLean>(place, from + at, bytes, goes_on);  // also if the role is to leave: the barrier expects the bytes
        take_place(place);
        if (!goes_on) return false;
      }
      from += task.constant_bytes;
      if constexpr (List::kHasDependents)
        if (task.dependent_pages && !keep(place, pass_ * stream.count + task.instruction, task.dependent_pages)) return false;
    }
    return true;
  }

  /// Waits until the next page is free. False if the run has ended before all passes, or the runtime was aborted.
  template <bool kLean>
  __device__ bool make_room(Place& place) {
    if (place.filled < place.page_count) return true;
    // Acquire, block scope: pairs with the arrivals in PageOperands::return_page(); the warps have read the page.
    if (!wait_for<kLean>(place.roles.page_empty[place.fill.slot()], place.fill.parity() ^ 1, TraceKind::page)) return false;
    if (kLean || place.bulk) ptx::fence_shared_for_bulk_copies();  // those reads come before the bulk copy, see there
    return true;
  }
  /// Waits until fewer than `window` pages are under way. More would fill the memory's queues, in which the stores, fences
  /// and polls of dependent tasks wait. False as make_room().
  template <bool kLean>
  __device__ bool make_way(Place& place) {
    // No order needed: this role reads nothing of the page.
    if (place.under_way < place.window) return true;
    if (!wait_for<kLean>(place.roles.page_full[place.land.slot()], place.land.parity(), TraceKind::landing)) return false;
    place.land.advance();
    --place.under_way;
    return true;
  }
  /// Starts the copies of one page, each request at its time if `paced`.
  template <bool kLean>
  __device__ static void ask(Place& place, const unsigned char* from, std::uint32_t bytes, bool paced) {
    const bool bulk = kLean || place.bulk;
    const std::uint32_t each = bulk ? kRequestBytes : kPageBytes;
    for (std::uint32_t at = 0; at < bytes; at += each) {
      if (paced) keep_pace(place, bulk ? place.ticks / (kPageBytes / kRequestBytes) : place.ticks);
      copy_to_page(place.fill.slot(), at, from + at, bytes - at < each ? bytes - at : each, bulk, place.policy);
    }
  }
  /// Waits until `ticks` after the last request. At most one page's time that was lost is made up for.
  __device__ static void keep_pace(Place& place, std::uint32_t ticks) {
    if (!place.ticks) return;
    const auto late = [&] { return static_cast<std::int32_t>(static_cast<std::uint32_t>(P::ticks()) - place.next_at); };
    std::int32_t by = late();
    const auto most = static_cast<std::int32_t>(place.ticks);
    if (by > most || by < -most) place.next_at += static_cast<std::uint32_t>(by);
    else
      while (by < 0) by = late();
    place.next_at += ticks;
  }
  /// Moves the ring on by the page that was requested or kept.
  __device__ static void take_place(Place& place) {
    place.fill.advance();
    if (place.filled < place.page_count) ++place.filled;
    ++place.under_way;
  }

  /// Waits for a phase of `barrier`. Acquire, block scope; the caller names the pair. Meanwhile it fills kept pages when
  /// their task has its command. False if the run has ended before all passes, or the runtime was aborted.
  template <bool kLean>
  __device__ bool wait_for(std::uint64_t& barrier, std::uint32_t parity, TraceKind kind) {
    if constexpr (kLean) {
      if (ptx::mbarrier_test(barrier, parity)) return true;
      // No time limit here, as in compute warps: the control and store roles have one, and wait for the same pages.
      const std::uint64_t begin = writer_.now();
      for (std::uint32_t spins = 1; !ptx::mbarrier_test(barrier, parity); ++spins)
        if (spins % 16 == 0 && is_over()) return false;
      writer_.write(kind, begin, 0, pass_);
      return true;
    } else {
      return (bulk_ && !kept_.any() && ptx::mbarrier_poll(barrier, parity)) || wait_longer(&barrier, parity, kind);
    }
  }
  /// Relaxed, because a role that sees one of the words only leaves. `stop_loading` pairs with control_compiled_run(), `abort`
  /// with report_wait() or the host's copy.
  __device__ bool is_over() const {
    return P::block(roles_shared().stop_loading).load(Order::relaxed) || P::device(*roles_shared().abort).load(Order::relaxed);
  }
  /// The slow path of wait_for(), with a time limit.
  [[gnu::noinline]] __device__ bool wait_longer(std::uint64_t* barrier, std::uint32_t parity, TraceKind kind) {
    const std::uint64_t begin = writer_.now();
    while (!stopped_) {
      std::uint32_t seen = kStop;
      if (lane() == 0) seen = poll(*barrier, parity);
      if (!bulk_) {
        seen = __shfl_sync(0xffffffffu, seen, 0);  // all lanes take the same branch
        __syncwarp();                              // all lanes see what lane 0 has acquired
      }
      if (seen == kThere) all_see(*barrier, parity);
      if constexpr (List::kHasDependents)
        if (seen == kAnnounced) kept_.fill(true, bulk_);
      stopped_ = seen == kStop;
      if (seen == kThere) break;
    }
    writer_.write(kind, begin, 0, pass_);
    return !stopped_;
  }

  /// One lane: polls until the phase is complete, the kept pages may be filled, or the role is to leave.
  __device__ Polled poll(std::uint64_t& barrier, std::uint32_t parity) const {
    Polled seen = kStop;
    const PhaseWait limit = Views<P>{dev_}.wait_for_phase(run_.worker);
    const auto something = [&](std::uint64_t&) {
      // Acquire, block scope: pairs with PageOperands::return_page() for a free page, or with the copies that fill it.
      if (ptx::mbarrier_poll(barrier, parity)) seen = kThere;
      else if (kept_.are_announced()) seen = kAnnounced;
      // Relaxed: pairs with control_compiled_run(); a role that sees it only leaves.
      else return P::block(roles_.stop_loading).load(Order::relaxed) != 0;
      return true;
    };
    return spin_until<P>(limit, WaitReason::page, &barrier, parity, something) ? seen : kStop;
  }

  /// Keeps pages for a task's dependent operands. Only one task at a time has kept pages: those of the next task wait until
  /// these are filled.
  __device__ bool keep(Place& place, std::uint32_t number, std::uint32_t pages) {
    if (kept_.any() && !wait_longer(&roles_.page_full[kept_.slot()], kept_.parity(), TraceKind::landing)) return false;
    for (std::uint32_t page = 0; page < pages; ++page) {
      if (!make_room<false>(place) || !make_way<false>(place)) return false;
      kept_.add(number, place.fill);
      take_place(place);
    }
    kept_.close();
    return true;
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const DeviceState& dev_;
  const bool bulk_;
  std::uint32_t pass_ = 0;
  KeptPages<List> kept_;
  bool stopped_ = false;
  TraceWriter<P> writer_;
};

}  // namespace flywheel::detail
