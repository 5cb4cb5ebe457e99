// The options of a runtime, for programs that call flywheel::start(). The defaults work everywhere. An error about a
// limit names the option to change.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace flywheel {

/// Where tasks run. `automatic`: on the GPU if a usable one is found, else on CPU threads.
enum class Target { automatic, gpu, cpu };

/// How long the kernel stays on the GPU. `resident`: it stays and reads new runs from the inbox, and it parks (ends
/// until the next run) after Options::park_after without work. `drain`: the host writes work to the inbox first, and
/// the kernel ends when that is done; sanitizers, profilers and CUDA_LAUNCH_BLOCKING=1 need this. `automatic`: drain if
/// one of these is in use, else resident; the environment variable FLYWHEEL_MODE (resident, drain) overrides it.
enum class Mode { automatic, resident, drain };

struct Options {
  Target target = Target::automatic;  // FLYWHEEL_TARGET (gpu, cpu) overrides `automatic`
  Mode mode = Mode::automatic;
  int device = 0;             // CUDA device index
  std::uint32_t workers = 0;  // 0: one per SM, or one per hardware thread; fewer leave SMs to other programs

  std::size_t heap_bytes = std::size_t{64} << 20;  // first chunk of device memory for Runtime::allocate(); it grows
  // Limits. Memory for graphs grows as they are loaded: load() then waits for the runs in flight, parks the kernel and
  // takes more from the device.
  std::uint32_t max_tasks = 1u << 30;        // tasks of all loaded graphs together
  std::uint32_t max_edges = 1u << 30;        // dependencies and roots of all loaded graphs together
  std::uint32_t max_executables = 1u << 30;  // loaded graphs
  // Ready tasks in the queue of each priority, rounded up to a power of two. A dynamic graph loads if its tasks and
  // spawn_capacity fit into a queue together, and so do all dynamic runs in flight. A queue begins with this many slots if
  // they are 2^20 or fewer, else with 2^17, and grows to what the largest loaded graph needs.
  std::uint32_t queue_capacity = 1u << 28;

  // Sizes of memory that is allocated once, at start.
  // Runs in flight at once. Further runs wait in the backlog and leave it by priority, and in the order of submission
  // within a priority. Normal runs leave a sixteenth of these slots and of the room in the ready queues to high runs.
  // Low runs leave an eighth, but at least one.
  std::uint32_t max_runs = 256;
  std::uint32_t max_waiting = 1u << 16;     // runs in the backlog; if full, submit() waits, try_submit() returns nothing
  std::uint32_t overlap = 4;                // runs of one executable in flight at once
  std::uint32_t spawn_capacity = 1u << 13;  // spawned tasks that exist at once; rounded up to a power of two
  std::uint32_t result_bytes = 16u << 10;   // results of the tasks of one run
  std::uint32_t stream_capacity = 256;      // streamed values of one run that the host has not read yet
  std::uint32_t stream_unread = 1u << 20;   // values of a live run kept for the program; if full, its tasks wait
  // For block.scratch(). Where a task of a dynamic or phased run leaves 65 KB of it, long passes of block.stream() and
  // block.stream_reduce() copy ahead there on Hopper, see device/tuning.md. With operands the default is 32 KB, and shrinks if
  // their pages need the room; such tasks have the pages beside it on a GPU. A GPU has 90 to 220 KB at most: start() on it says
  // how much, and start() on CPU workers warns of more than any GPU has.
  std::uint32_t scratch_bytes = 72u << 10;
  std::uint32_t operand_pages = 0;  // 26 KB pages of shared memory for operands; 0: as many as fit
  std::uint32_t trace_events = 0;   // most events of each role of each worker in a trace, 24 bytes each; see `traced`

  // Compiled runs: checks how task bodies use pages, handoffs and sent(), so that a mistake fails the task and names
  // it. FLYWHEEL_CHECK=1 switches it on as well. It costs time on a GPU. CPU workers always check pages.
  bool check_operands = false;

  // Time limits.
  std::chrono::milliseconds park_after{20};  // time without work after which the kernel leaves the GPU
  // Under work that never ends the kernel gives the GPU back so often, with its work kept on the device, for other kernels
  // and for calls that wait for the device; 0: only on demand, see Runtime::yield() and Pause.
  // Tasks, passes of compiled runs and phases are not interrupted, so one that takes longer delays it. Traced runs go on to
  // their end. CPU workers yield on demand alone.
  std::chrono::milliseconds yield_every{100};
  std::chrono::milliseconds start_timeout{10'000};     // until all workers have arrived after a launch
  std::chrono::milliseconds stall_limit{30'000};       // for one task; then its run fails and is cancelled
  std::chrono::milliseconds spin_budget{10'000};       // for one worker's wait for another; then a report and abort
  std::chrono::milliseconds check_budget{3'000};       // with check_operands: for one block.spin(); workers wait 4x as long
  std::chrono::milliseconds shutdown_timeout{10'000};  // for the runs in flight to end in shutdown()

  std::string log_level = "warn";  // trace, debug, info, warn, error, off; FLYWHEEL_LOG overrides it

  /// What measurements and tests change; programs leave the defaults. start() throws CapacityError for a window of 0, and for
  /// a pace that is neither 0 nor at least 0.01.
  struct Tuning {
    bool keep_successor = true;  // false: no worker keeps a task that it made ready (measures hops)
    bool bulk_copies = true;     // false: fetches operands as on GPUs before Hopper
    // false: compiled runs always have all warp roles, see device/compiled/bare.cuh, and warp tasks do not run side by side.
    bool bare_runs = true;
    std::uint32_t operand_window = 78u << 10;       // bytes of operands that are being fetched to an SM at once
    std::chrono::microseconds yield_gap{100};       // from the end of a kernel that yields to its next launch
    std::chrono::milliseconds yield_patience{110};  // for which workers wait for each other to yield; then all go on
    bool cpu_yields = false;                        // CPU workers, too, yield every Options::yield_every
    double operand_pace = 1;  // a worker's fetch rate over its share of the rated memory speed; 0: no limit
  };
  Tuning tuning = {};
};

}  // namespace flywheel
