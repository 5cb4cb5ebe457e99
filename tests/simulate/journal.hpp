// What the bodies of tasks tell the simulator past the program's own memory: no access, no step and no order of memory comes of
// it. The checks that need an outsider's view read it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flywheel::simulate::journal {

/// One execution of a body.
struct Entry {
  std::uint32_t run;  // the program's own number of it
  std::uint32_t task;
  std::uint32_t worker;
  std::uint32_t level;  // its priority
  std::uint64_t begun;  // step; 0: none
  std::uint64_t ended;  // step; 0: it still runs, or its thread was stopped for good
  std::uint64_t begun_ns;
  std::uint64_t ended_ns;
  std::uint64_t leapt_ns;  // of that time, how much the clock leapt by
  std::uint32_t leaps;
};

inline constexpr std::uint32_t kGang = 9;  // in place of a level: this body waits for others of its run

/// Forgets everything; before each run.
void clear();
std::size_t begin(std::uint32_t run, std::uint32_t task, std::uint32_t worker, std::uint32_t level);
void end(std::size_t entry);
std::size_t size();
const Entry& at(std::size_t entry);

/// Steps and time so far, without taking a step.
std::uint64_t steps();
std::uint64_t now_ns();
/// The process stands still for so long: the clock leaps, and no thread takes a step.
void stop_process(std::uint64_t ns);
/// Whether the schedule lets the clock leap by itself.
bool clock_leaps();

/// From here on begin() checks that no worker passes more urgent work for long. `queued`: the runtime's count of work at each
/// level, the highest first. A worker that found one of them above zero begins `most` less urgent tasks at most before it is
/// not above zero again.
void watch_urgency(const std::int64_t* queued, std::uint32_t levels, std::uint32_t most);

/// From here on a body begins and ends when its worker says so: word 2 of its heartbeat of `bytes` is the time of the begin,
/// and has its highest bit set from the end on. A thread may be stopped between that and the body's first or last statement.
void watch_bodies(const void* heartbeats, std::size_t workers, std::size_t bytes);

/// Whether some body has exceeded this limit, as it is to be counted: time in which the process stood still counts for a
/// fraction of the limit, and a gang's begins anew when another worker begins a task of the run or is through with one of
/// another run.
bool exceeded(std::uint64_t limit_ns);

/// From here on let_in_at() knows when a run left the backlog: the host writes a packed message of words {tag:32 | payload:32}
/// to the inbox, from the last word to the first; in it is the run's first parameter, which is its number.
void watch_inbox(const void* inbox, std::size_t entries);
/// Step; 0: it has not been let in.
std::uint64_t let_in_at(std::uint32_t run);

}  // namespace flywheel::simulate::journal
