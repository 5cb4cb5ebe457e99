// What a program can choose when it starts a runtime. Every default works; every limit names itself in its error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace flywheel {

/// Where tasks run. `automatic`: the GPU if there is a usable one, CPU threads if not.
enum class Target { automatic, gpu, cpu };

/// `resident`: the kernel stays on the GPU and is fed; it parks when idle. `drain`: work is loaded first and the kernel
/// ends when it is done (for sanitizers, profilers and CUDA_LAUNCH_BLOCKING=1). `automatic`: resident, unless one of
/// those is in use. The environment variable FLYWHEEL_MODE (resident, drain) overrides `automatic`.
enum class Mode { automatic, resident, drain };

struct Options {
  Target target = Target::automatic;  // FLYWHEEL_TARGET (gpu, cpu) overrides `automatic`
  Mode mode = Mode::automatic;
  int device = 0;             // CUDA device index
  std::uint32_t workers = 0;  // 0: one on each SM, or one for each hardware thread; fewer leave SMs to other programs

  // Memory, taken once at start.
  std::size_t heap_bytes = std::size_t{64} << 20;  // first chunk of device memory for Runtime::allocate(); it grows
  std::uint32_t max_tasks = 1u << 17;              // tasks of all loaded graphs
  std::uint32_t max_edges = 1u << 19;              // dependencies (and roots) of all loaded graphs
  std::uint32_t max_executables = 256;
  // Runs in flight at once; more wait in the backlog, and leave it by priority and, within one, in the order of submission. Of these
  // slots and of the queues' room normal runs leave a sixteenth to high ones, and low runs an eighth, but at least one.
  std::uint32_t max_runs = 256;
  std::uint32_t max_waiting = 1u << 16;            // submissions in the backlog; then submit() waits and try_submit() declines
  std::uint32_t overlap = 4;                       // runs of one executable in flight at once
  std::uint32_t queue_capacity = 1u << 17;         // ready tasks of each priority
  std::uint32_t spawn_capacity = 1u << 13;         // spawned tasks alive at once
  std::uint32_t result_bytes = 16u << 10;          // task results of one run
  std::uint32_t stream_capacity = 256;             // streamed values the host may be behind
  std::uint32_t stream_unread = 1u << 20;          // values of a live run the host keeps for the program; then its tasks wait
  std::uint32_t scratch_bytes = 32u << 10;         // shared memory for block.scratch(); unset, less where pages need it
  std::uint32_t operand_pages = 0;                 // 26 KB pages of shared memory for operands; 0: as many as fit
  std::uint32_t trace_events = 0;                  // of each warp role of each worker, for traced runs

  // Compiled runs: whether what task bodies do with pages, handoffs and sent() is counted, so that a mistake fails the task
  // by name; FLYWHEEL_CHECK=1 does the same. Costs time on a GPU. CPU workers always count pages.
  bool check_operands = false;

  // Time limits.
  std::chrono::milliseconds park_after{20};            // idle time after which the kernel gives the GPU back
  std::chrono::milliseconds start_timeout{10'000};     // for all workers to arrive after a launch
  std::chrono::milliseconds stall_limit{30'000};       // for one task; then its run fails and is cancelled
  std::chrono::milliseconds spin_budget{10'000};       // for one worker to wait for another; then a report and abort
  std::chrono::milliseconds check_budget{3'000};       // with check_operands: for one block.spin(); workers wait 4 times as long
  std::chrono::milliseconds shutdown_timeout{10'000};  // for runs to end in shutdown()

  std::string log_level = "warn";  // trace, debug, info, warn, error, off; FLYWHEEL_LOG overrides it

  // For measurements and tests: programs leave these as they are.
  bool keep_successor = true;                // false: a worker never keeps a task it made ready (to measure hops between SMs)
  bool bulk_copies = true;                   // false: fetch operands as on GPUs before Hopper
  std::uint32_t operand_window = 78u << 10;  // bytes of operands that may be under way to an SM at once
  double operand_pace = 1;                   // of what memory is rated at, a worker asks for this times its share; 0: no limit
};

}  // namespace flywheel
