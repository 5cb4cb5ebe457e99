// The load role: one warp fetches the worker's operands into pages.
#pragma once

#include "dependents.cuh"

namespace flywheel {

/// Fetches the worker's operand stream, pass after pass, as far ahead as pages allow: that waits for no task. Pages for
/// dependent operands keep their place in the ring, and are filled when the task's predecessors are done; meanwhile the
/// stream goes on behind them.
///
/// A page is asked for in two requests. What comes at once goes ahead of what compute warps look for meanwhile: in one request
/// Llama-3.2-1B on an H200 took 0.660 ms a token in place of 0.657 (8 texts: 0.799 in place of 0.788), in four 0.663.
///
/// Requests keep a pace a little above the memory's: a worker that could ask for more at once, because it had to wait
/// before, would only fill the memory's queues, where what other workers wait for waits, too. Llama-3.2-1B on an H200: 0.715
/// ms a token in place of 0.733; with a pace below the memory's, 0.721.
///
/// Tried on an H200: bringing what comes next to L2 while all pages are full, at the same pace. Llama-3.2-1B took 0.693 ms a
/// token (64 KB ahead), 0.699 (128 KB) and 0.727 (256 KB) in place of 0.666, though what was there was then asked for without
/// a pace. Prefetched bytes come to an SM no faster than memory's own, 34 bytes/ns; what it has loaded before, at 60. Nor does it
/// help to stand back while attention loads for itself: 0.727 (3 pages later) to 0.752 ms (at once) at position 8192 for 0.728.
template <class List>
class LoadRole {
  using P = ThreadPlatform;

 public:
  __device__ LoadRole(RolesShared& roles, const DeviceState& dev)
      : roles_(roles), run_(roles.run), dev_(dev), bulk_(ptx::kHopper && dev.bulk_copies),
        writer_(run_.traced && lane() == 0 ? dev.trace : TraceBuffers{}, run_.worker, TraceRole::load) {}

  /// All lanes. One of them is enough for bulk copies: there the others leave.
  __device__ void operator()() {
    if (bulk_ && lane() != 0) return;
    // Pairs with the release of whoever packed the stream, which the control thread acquired with the run.
    ptx::fence_global_for_bulk_copies();
    ptx::fence_shared_for_bulk_copies();  // what the run before has read in pages
    Place place(roles_, dev_, bulk_);
    if (bulk_ && !List::kHasDependents) load_passes<true>(place);
    else load_passes<false>(place);
    if constexpr (List::kHasDependents) {
      if (kept_.any()) wait_longer(&roles_.landed[kept_.slot()], kept_.parity(), TraceKind::landing);
      if (kept_.any()) kept_.fill(false, bulk_);
    }
    // Nothing may be written to shared memory once the run is left.
    for (; place.under_way; --place.under_way, place.land.advance())
      wait_phase(roles_.landed[place.land.slot()], place.land.parity(), WaitReason::page);
    writer_.close();
  }

 private:
  /// What every page takes: copies of its own, so that it stays in registers whatever is called. This one warp sets the
  /// pace of the memory: a page must not take it more than a fraction of the time that its bytes take.
  struct Place {
    __device__ Place(RolesShared& all, const DeviceState& dev, bool bulk)
        : roles(all), page_count(dev.page_count), window(dev.page_window), ticks(dev.page_ticks), bulk(bulk), fill(page_count),
          land(page_count), policy(ptx::read_once_policy()) {}
    RolesShared& roles;
    const std::uint32_t page_count, window, ticks;
    const bool bulk;
    RingCursor fill, land;
    const std::uint64_t policy;
    std::uint32_t under_way = 0;  // pages asked for or kept, and not seen to land
    std::uint32_t filled = 0;     // pages used at least once
    std::uint32_t next_at = 0;    // when the next request may be made
  };
  static constexpr std::uint32_t kRequestBytes = kPageBytes / 2;
  enum Seen : std::uint32_t { kThere, kAnnounced, kStop };

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  /// `kLean`: there is nothing to do but copy bulks and wait for pages.
  template <bool kLean>
  __device__ void load_passes(Place& place) {
    for (pass_ = 0; pass_ < run_.repeat && load_pass<kLean>(place); ++pass_) {}
  }

  template <bool kLean>
  __device__ bool load_pass(Place& place) {
    const WorkerStream stream = run_.stream;
    if (stream.operand_task_count == 0) return false;
    const unsigned char* from = stream.operands;
    OperandTask next = stream.operand_tasks[0];
    for (std::uint32_t i = 0; i < stream.operand_task_count; ++i) {
      const OperandTask task = next;
      if (i + 1 < stream.operand_task_count) next = stream.operand_tasks[i + 1];  // on its way while this one loads
      for (std::uint32_t at = 0; at < task.constant_bytes; at += kPageBytes) {
        const std::uint32_t left = task.constant_bytes - at, bytes = left < kPageBytes ? left : kPageBytes;
        if (!make_room<kLean>(place)) return false;
        // All that can be done is done before an earlier page lands: what stands between that and the next request
        // is time in which less is under way than might be.
        if (kLean || place.bulk) ptx::expect_bytes(place.roles.landed[place.fill.slot()], bytes);
        const bool goes_on = make_way<kLean>(place);
        ask<kLean>(place, from + at, bytes, goes_on);  // what is expected must come
        take_place(place);
        if (!goes_on) return false;
      }
      from += task.constant_bytes;
      if constexpr (List::kHasDependents)
        if (task.dependent_pages && !keep(place, pass_ * stream.count + task.instruction, task.dependent_pages)) return false;
    }
    return true;
  }

  /// A page that is free. False if the run has ended before all passes, or the runtime was aborted.
  template <bool kLean>
  __device__ bool make_room(Place& place) {
    if (place.filled < place.page_count) return true;
    if (!wait_for<kLean>(place.roles.returned[place.fill.slot()], place.fill.parity() ^ 1, TraceKind::page)) return false;
    if (kLean || place.bulk) ptx::fence_shared_for_bulk_copies();  // pairs with PageOperands::return_page()
    return true;
  }
  /// Not too much under way: what a dependency waits for (stores, fences, polls) would queue behind it in the memory
  /// system. False likewise.
  template <bool kLean>
  __device__ bool make_way(Place& place) {
    if (place.under_way < place.window) return true;
    if (!wait_for<kLean>(place.roles.landed[place.land.slot()], place.land.parity(), TraceKind::landing)) return false;
    place.land.advance();
    --place.under_way;
    return true;
  }
  template <bool kLean>
  __device__ static void ask(Place& place, const unsigned char* from, std::uint32_t bytes, bool paced) {
    const bool bulk = kLean || place.bulk;
    const std::uint32_t each = bulk ? kRequestBytes : kPageBytes;
    for (std::uint32_t at = 0; at < bytes; at += each) {
      if (paced) keep_pace(place, bulk ? place.ticks / (kPageBytes / kRequestBytes) : place.ticks);
      copy_to_page(place.fill.slot(), at, from + at, bytes - at < each ? bytes - at : each, bulk, place.policy);
    }
  }
  /// Until it is time for the next request, `ticks` after the last. A page's time that was lost may be made up for, no more.
  __device__ static void keep_pace(Place& place, std::uint32_t ticks) {
    if (!place.ticks) return;
    const auto late = [&] { return static_cast<std::int32_t>(static_cast<std::uint32_t>(P::ticks()) - place.next_at); };
    std::int32_t by = late();
    const auto most = static_cast<std::int32_t>(place.ticks);
    if (by > most || by < -most) place.next_at += static_cast<std::uint32_t>(by);
    else while (by < 0) by = late();
    place.next_at += ticks;
  }
  __device__ static void take_place(Place& place) {
    place.fill.advance();
    if (place.filled < place.page_count) ++place.filled;
    ++place.under_way;
  }

  /// Until that phase is complete; kept pages are filled meanwhile, if their task's turn comes. False if the run has
  /// ended before all passes, or the runtime was aborted.
  template <bool kLean>
  __device__ bool wait_for(std::uint64_t& barrier, std::uint32_t parity, TraceKind kind) {
    if constexpr (kLean) {
      if (ptx::mbarrier_test(barrier, parity)) return true;
      // Without a time limit, as compute warps: what this waits for, the control and store roles wait for, too.
      const std::uint64_t begin = writer_.now();
      for (std::uint32_t spins = 1; !ptx::mbarrier_test(barrier, parity); ++spins)
        if (spins % 16 == 0 && is_over()) return false;
      writer_.write(kind, begin, 0, pass_);
      return true;
    } else {
      return (bulk_ && !kept_.any() && ptx::mbarrier_poll(barrier, parity)) || wait_longer(&barrier, parity, kind);
    }
  }
  /// Relaxed, both: who sees one leaves.
  __device__ bool is_over() const {
    return P::block(roles_shared().stop_loading).load(Order::relaxed) || P::device(*roles_shared().abort).load(Order::relaxed);
  }
  [[gnu::noinline]] __device__ bool wait_longer(std::uint64_t* barrier, std::uint32_t parity, TraceKind kind) {
    const std::uint64_t begin = writer_.now();
    while (!stopped_) {
      std::uint32_t seen = kStop;
      if (lane() == 0) seen = look(*barrier, parity);
      if (!bulk_) {
        seen = __shfl_sync(0xffffffffu, seen, 0);  // all lanes do the same
        __syncwarp();                              // and see what lane 0 has acquired
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

  __device__ Seen look(std::uint64_t& barrier, std::uint32_t parity) const {
    Seen seen = kStop;
    const PhaseWait limit = Views<P>{dev_}.wait_for_phase(run_.worker);
    const auto something = [&](std::uint64_t&) {
      // Acquire: pairs with who gives the page back, or with the copies that fill it.
      if (ptx::mbarrier_poll(barrier, parity)) seen = kThere;
      else if (kept_.are_announced()) seen = kAnnounced;
      else return P::block(roles_.stop_loading).load(Order::relaxed) != 0;
      return true;
    };
    return spin_until<P>(limit, WaitReason::page, &barrier, parity, something) ? seen : kStop;
  }

  /// Takes places for a task's dependent operands. Those of one task at a time: the next ones wait until these are filled.
  __device__ bool keep(Place& place, std::uint32_t number, std::uint32_t pages) {
    if (kept_.any() && !wait_longer(&roles_.landed[kept_.slot()], kept_.parity(), TraceKind::landing)) return false;
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

}  // namespace flywheel
