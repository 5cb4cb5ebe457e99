// Random programs that use the runtime on an emulated GPU, whose blocks are threads of the simulator, and check what comes out.
#pragma once

#include <cstdint>
#include <string>

namespace flywheel::simulate::emulated {

/// Shapes of programs. `kept`: who runs a task before its high successor; `roots`: all workers but one are held; `awaited`:
/// from level to level; `control`: with choices, loops and continuations.
enum class Shape { graphs, compiled, gangs, phases, streams, cancels, parks, kept, roots, followers, awaited, control, any };
inline constexpr const char* kShapeNames[] = {"gpu-graphs",  "gpu-compiled", "gpu-gangs", "gpu-phases", "gpu-streams",
                                              "gpu-cancels", "gpu-parks",    "gpu-kept",  "gpu-roots",  "gpu-followers",
                                              "gpu-awaited", "gpu-control",  "gpu"};

/// Runs the program that the seed says; what is wrong goes to finding(). Called on a fiber.
void run_workload(std::uint64_t seed, Shape shape);
/// What it was, for a report.
const std::string& workload_text();

}  // namespace flywheel::simulate::emulated
