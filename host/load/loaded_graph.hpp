// A loaded graph: checked, placed in device memory, and ready to be submitted any number of times. The loader creates
// it; runs and the program's Executable share its ownership.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "../../runtime/records/graph.hpp"
#include "../../runtime/records/run.hpp"
#include "executable.hpp"

namespace flywheel::detail {

struct Core;

/// The places of a graph in device memory, and what messages and traces need of its tasks. Freed when the last
/// Executable and the last run of it are gone, see Loader::load().
struct LoadedGraph {
  LoadedGraph(std::shared_ptr<Core> owner) : core(std::move(owner)) {}
  LoadedGraph(const LoadedGraph&) = delete;
  LoadedGraph& operator=(const LoadedGraph&) = delete;

  /// "task 7 (Saxpy)", with the stage if the task has one, for messages. `local` is the index that Graph::add() gave.
  std::string task_name(std::uint32_t local) const;

  std::shared_ptr<Core> core;
  std::uint64_t graph_id = 0;
  GraphKind kind = GraphKind::dynamic;
  std::uint32_t exec = 0;
  std::uint32_t first_record = 0;
  std::uint32_t task_count = 0;
  std::uint32_t first_edge = 0;
  std::uint32_t result_bytes = 0;
  RunConstants constants{};             // the same for all runs of the graph; admission fills in the rest
  std::vector<unsigned char> params;    // default values of the parameters
  std::vector<std::type_index> types;   // of each task; of a batch of one type, that type alone
  std::uint32_t first_local = 0;        // a part of a batch: the index in the batch of the part's first task
  std::vector<std::uint32_t> stage_of;  // of each task: its index in `stages`
  std::vector<std::string> stages;
  std::vector<bool> in_gang;                   // of each task: whether it is in a gang
  std::vector<std::uint32_t> dependent_bytes;  // of each task: bytes of operands that other tasks write
  void* counters = nullptr;
  void* phases = nullptr;
  void* schedule = nullptr;  // of a compiled graph
  void* operands = nullptr;
  std::uint64_t operand_bytes = 0;
  bool placed = false;    // the heap may have to get memory back
  bool reserved = false;  // ranges of records and edges are allocated

  std::vector<std::uint32_t> free_banks;  // banks of counters; guarded by the dispatcher's mutex
};

}  // namespace flywheel::detail
