#include "host/heartbeat.hpp"

#include <algorithm>
#include <sstream>

#include "host/trace.hpp"

namespace flywheel {

namespace {
using P = CpuPlatform;

WorkerState state_of(Heartbeat& heart) {
  // Acquire: pairs with the release in runtime/heartbeat, beat().
  return static_cast<WorkerState>(P::system(heart.state).load(Order::acquire));
}
}  // namespace

Watchdog::Watchdog(const World& world, const Options& options)
    : world_(world), limit_ns_(std::max<std::uint64_t>(std::chrono::nanoseconds(options.stall_limit).count(), 1)),
      last_elapsed_(world.workers, 0) {}

std::vector<Stall> Watchdog::new_stalls() {
  std::vector<Stall> stalls;
  for (std::uint32_t w = 0; w < world_.workers; ++w) {
    Heartbeat& heart = world_.heartbeats[w];
    const bool slow = state_of(heart) == WorkerState::slow;
    // Acquire: pairs with begin_body(); the item belongs to it.
    const std::uint64_t started = P::system(heart.started_ns).load(Order::acquire);
    const std::uint64_t now = P::now_ns();
    const std::uint64_t running = started && now > started ? now - started : 0;
    const std::uint64_t elapsed = slow ? P::system(heart.elapsed_ns).load(Order::relaxed) : running;
    const bool same_task = elapsed >= last_elapsed_[w];
    const bool newly = elapsed >= limit_ns_ && !(same_task && last_elapsed_[w] >= limit_ns_);
    last_elapsed_[w] = elapsed;
    if (newly) stalls.push_back({w, Item::unpack(P::system(heart.item).load(Order::relaxed)), elapsed});
  }
  return stalls;
}

std::string Watchdog::wait_report(const std::function<std::string(std::uint16_t, std::uint32_t)>& name_of) const {
  std::ostringstream text;
  for (std::uint32_t w = 0; w <= world_.workers; ++w) {
    WaitReport& report = world_.reports[w];
    // Acquire: pairs with the release in runtime/wait, report_wait().
    const auto reason = static_cast<WaitReason>(P::system(report.reason).load(Order::acquire));
    if (reason == WaitReason::none) continue;
    text << (w == world_.workers ? std::string("the door") : "worker " + std::to_string(w));
    if (const std::uint64_t bits = P::system(report.part).load(Order::relaxed)) {
      const WaitPart part = WaitPart::unpack(bits);
      text << ", at " << name_of(part.run, part.task) << ": its " << describe(static_cast<TraceRole>(part.role)) << " role";
    }
    text << " waited "
         << report.waited_ns / 1000000 << " ms for " << describe(reason) << " at address 0x" << std::hex
         << report.address << ": it saw 0x" << report.saw << " and expected 0x" << report.expected << std::dec << "; ";
  }
  return text.str();
}

std::uint32_t Watchdog::present() const {
  std::uint32_t count = 0;
  for (std::uint32_t w = 0; w < world_.workers; ++w) count += state_of(world_.heartbeats[w]) != WorkerState::absent;
  return count;
}

}  // namespace flywheel
