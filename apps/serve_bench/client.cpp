#include "apps/serve_bench/client.hpp"

#include <algorithm>
#include <thread>

namespace serve {
namespace {

constexpr double kWarmUp = 0.1;  // of the time of arrivals

std::int64_t ns_of(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

void Outcome::merge(const Outcome& other) {
  latency.merge(other.latency);
  arrived += other.arrived;
  arrived_by_half += other.arrived_by_half;
  answered += other.answered;
  answered_by_half += other.answered_by_half;
  answered_by_end += other.answered_by_end;
  wrong += other.wrong;
  lost += other.lost;
  sum += other.sum;
}

Client::Client(Session& session, const Workload& workload, const Load& load, std::uint32_t self, std::uint32_t clients)
    : session_(session),
      workload_(workload),
      load_(load),
      end_ns_(ns_of(load.seconds)),
      next_seed_(stir(load.seed * 1024 + self)),
      lines_{Line{Priority::high, {load.per_second * load.high_share / clients, stir(next_seed_ + 1)}, {}},
             Line{Priority::normal, {load.per_second * (1 - load.high_share) / clients, stir(next_seed_ + 2)}, {}}} {
  answers_.reserve(4096);
}

std::int64_t Client::now() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count(); }

void Client::run(Clock::time_point begin) {
  begin_ = begin;
  std::this_thread::sleep_until(begin);
  for (std::int64_t time = now(); !is_over(time); time = now()) {
    bool busy = false;
    for (Line& line : lines_) busy |= begin_due(line, time);
    busy |= collect();
    if (!busy) std::this_thread::yield();
  }
  count_lost();
}

bool Client::arrives(const Line& line, std::int64_t now) const {
  if (load_.closed) return now < end_ns_ && line.priority == Priority::normal;
  return line.arrivals.next_ns() < end_ns_ && line.arrivals.next_ns() <= now;
}

/// Begins one request at most, so that answers are taken between any two.
bool Client::begin_due(Line& line, std::int64_t now) {
  if (!arrives(line, now)) return false;
  const Request request{next_seed_, load_.closed ? now : line.arrivals.next_ns(), line.priority};
  if (!session_.try_begin(request)) return false;
  line.outcome.sum += sum_of(workload_, request.seed);
  ++line.outcome.arrived;
  line.outcome.arrived_by_half += request.arrival_ns < end_ns_ / 2;
  next_seed_ += 0x632be59bd9b4e019ull;
  if (!load_.closed) line.arrivals.advance();
  return true;
}

bool Client::collect() {
  answers_.clear();
  session_.collect(answers_);
  const std::int64_t time = now();
  for (const Answer& answer : answers_) take(answer, time);
  return !answers_.empty();
}

void Client::take(const Answer& answer, std::int64_t now) {
  Outcome& outcome = lines_[answer.request.priority == Priority::high ? 0 : 1].outcome;
  ++outcome.answered;
  outcome.answered_by_half += now < end_ns_ / 2;
  outcome.answered_by_end += now < end_ns_;
  outcome.wrong += answer.value != answer_of(workload_, answer.request.seed);
  if (answer.request.arrival_ns >= ns_of(load_.seconds * kWarmUp)) outcome.latency.add(now - answer.request.arrival_ns);
}

bool Client::is_over(std::int64_t now) const {
  if (now >= end_ns_ + ns_of(load_.drain_seconds)) return true;
  return std::ranges::all_of(lines_, [&](const Line& line) {
    const bool no_more = load_.closed ? now >= end_ns_ : line.arrivals.next_ns() >= end_ns_;
    return no_more && line.outcome.answered == line.outcome.arrived;
  });
}

/// What was begun and not answered; and what the schedule still holds, as one, since it was not served either.
void Client::count_lost() {
  for (Line& line : lines_) {
    line.outcome.lost = line.outcome.arrived - line.outcome.answered;
    if (!load_.closed) line.outcome.lost += line.arrivals.next_ns() < end_ns_;
  }
}

}  // namespace serve
