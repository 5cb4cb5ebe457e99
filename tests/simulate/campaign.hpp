// Many runs of the simulator, each in a process of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulate/emulated.hpp"
#include "simulate/scheduler.hpp"
#include "simulate/sites.hpp"
#include "simulate/workloads.hpp"

namespace flywheel::simulate {

inline constexpr const char* kScheduleNames[] = {"random", "pct", "stop", "most", "jump", "any"};
inline constexpr std::uint64_t kLargeOneIn = 16, kEmulatedOneIn = 4;  // seeds: large programs; of all shapes, those on a GPU
inline constexpr std::uint64_t kFewestSteps = 2000;                   // a run with less does not count

struct Request {
  Settings settings;
  Shape shape = Shape::any;
  std::optional<emulated::Shape> emulated;  // in place of that
  bool all = false;                         // of one seed in kEmulatedOneIn, an emulated one
  std::uint64_t count = 0;                  // 0: as many as there is time for
  double seconds = 0;                       // 0: as long as it takes
  std::uint64_t findings = 5;               // then it ends
  std::uint64_t jobs = 1;                   // processes at a time
  bool sites = false;
};

/// What a process that takes seeds, one after the other, reads of its children. Zeroed; shared with them and its parent.
struct Progress {
  std::uint64_t seed, hash;
  std::uint64_t runs, short_runs, steps, most_steps, findings;
  std::uint64_t of_size[64];  // runs by the logarithm of their steps
  std::uint64_t found_by[8];  // the first findings' seeds
  std::uint64_t of_schedule[static_cast<int>(Schedule::any)];
  std::uint64_t of_shape[static_cast<int>(Shape::any)], of_emulated[static_cast<int>(emulated::Shape::any)];
  Reached reached;
  Draws draws;
  char found[1024];  // what the last finding says
  Site sites[kMostSites];

  void add(const Progress& other);
};

extern Progress* progress;
extern Request request;

/// Zeroed, and shared with all children from here on.
void* share_memory(std::size_t bytes);
bool is_large(std::uint64_t seed);
bool is_emulated(std::uint64_t seed);
/// The program that the seed says.
void run_program(std::uint64_t seed);
const std::string& program_text(std::uint64_t seed);
/// Calls run() in a child. True if nothing was found there.
bool run_child(void (*run)(std::uint64_t seed), std::uint64_t seed);
/// All runs that `request` asks for, and a summary. Gives the exit status.
int run_campaign();
/// The run of that seed, and a smaller one that ends with the same finding. Gives the exit status.
int shrink(std::uint64_t seed);

}  // namespace flywheel::simulate
