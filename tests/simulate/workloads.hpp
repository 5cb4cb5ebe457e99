// Random programs that use the runtime on CPU workers and check what comes out.
#pragma once

#include <cstdint>
#include <string>

namespace flywheel::simulate {

/// Shapes of programs. `roots`: a repeated graph of more roots than two for each worker, in a small queue. `limits`: two
/// runtimes that share a kernel's limit of shared memory. `wires`: a wire of runtime/ by itself.
enum class Shape {
  graphs,
  compiled,
  phases,
  streams,
  cancels,
  threads,
  parks,
  roots,
  priorities,
  backlog,
  gangs,
  spawns,
  mixed,
  runtimes,
  limits,
  views,
  new_work,
  followers,
  control,
  takers,
  any
};
inline constexpr const char* kShapeNames[] = {"graphs", "compiled",   "phases",   "streams",   "cancels", "threads", "parks",
                                              "roots",  "priorities", "backlog",  "gangs",     "spawns",  "mixed",   "runtimes",
                                              "limits", "wires",      "new-work", "followers", "control", "takers",  "any"};

/// Runs the program that the seed says; what is wrong goes to finding(). Called on a fiber.
void run_workload(std::uint64_t seed, Shape shape);
/// What it was, for a report.
const std::string& workload_text();

}  // namespace flywheel::simulate
