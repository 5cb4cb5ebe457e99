// Traces made by hand, as a device would leave them.
#pragma once

#include <string>
#include <vector>

#include "host/trace/trace.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

struct MadeTrace {
  explicit MadeTrace(std::uint32_t worker_count, std::uint32_t room = 64)
      : workers(worker_count),
        capacity(room),
        tracks(worker_count * kTraceRoles),
        events(tracks.size() * room) {}

  TraceTrack& track(std::uint32_t worker, TraceRole role) {
    return tracks[worker * kTraceRoles + static_cast<std::uint32_t>(role)];
  }
  /// In ticks, which are ns where the track has no moments.
  TraceEvent& add(std::uint32_t worker, TraceRole role, TraceKind kind, std::uint32_t task, std::uint32_t pass,
                  std::uint64_t begin, std::uint32_t ticks, std::uint16_t kib = 0) {
    TraceTrack& its = track(worker, role);
    TraceEvent& event = events[(&its - tracks.data()) * std::size_t{capacity} + its.count++];
    event = {begin, ticks, task, pass, static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(role), kib};
    return event;
  }
  void body(std::uint32_t worker, std::uint32_t task, std::uint32_t pass, std::uint64_t begin, std::uint32_t ticks,
            std::uint16_t kib = 0) {
    add(worker, TraceRole::compute, TraceKind::body, task, pass, begin, ticks, kib);
  }
  void inputs(std::uint32_t worker, std::uint32_t task, std::uint32_t pass, std::uint64_t begin, std::uint32_t ticks) {
    add(worker, TraceRole::compute, TraceKind::inputs, task, pass, begin, ticks);
  }
  void wait(std::uint32_t worker, std::uint32_t task, std::uint32_t pass, std::uint64_t begin, std::uint32_t ticks) {
    add(worker, TraceRole::control, TraceKind::wait, task, pass, begin, ticks);
  }
  void gate(std::uint32_t worker, std::uint32_t pass, std::uint64_t begin, std::uint32_t ticks) {
    add(worker, TraceRole::control, TraceKind::gate, 0, pass, begin, ticks);
  }
  void moments(std::uint32_t worker, TraceRole role, TraceMoment begin, TraceMoment end) {
    track(worker, role).begin = begin;
    track(worker, role).end = end;
  }
  Trace trace() const { return {workers, capacity, tracks, events, names, types, dependent_bytes}; }

  std::uint32_t workers, capacity;
  std::vector<TraceTrack> tracks;
  std::vector<TraceEvent> events;
  std::vector<std::string> names{"task 0 (Load)", "task 1 (Mul)", "task 2 (Mul)"};
  std::vector<std::string> types{"Load", "Mul", "Mul"};
  std::vector<std::uint32_t> dependent_bytes;
};

}  // namespace flywheel::testing
