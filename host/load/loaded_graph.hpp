// A loaded graph: checked, placed in device memory, and ready to be submitted any number of times. The loader creates
// it; runs and the program's Executable share its ownership.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "../../runtime/records/device_state.hpp"
#include "../tasks/task_store.hpp"
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
  std::type_index type_of(std::uint32_t local) const { return types[type_numbers.empty() ? 0 : type_numbers[local]]; }
  /// The address of a bank of counters of a dynamic graph. The caller holds the dispatcher's mutex: the arena moves
  /// under it.
  std::uint64_t bank_address(std::uint32_t bank) const {
    return reinterpret_cast<std::uint64_t>(dev->records + first_bank + bank * bank_units);
  }

  std::shared_ptr<Core> core;
  const DeviceState* dev = nullptr;
  std::uint64_t graph_id = 0;
  GraphKind kind = GraphKind::dynamic;
  bool single = false;  // its only task was submitted without a graph, and follows others
  std::uint32_t first_record = 0;
  std::uint32_t task_count = 0;
  std::uint32_t result_bytes = 0;
  RunConstants constants{};                 // the same for all runs of the graph; admission fills in the rest
  std::vector<unsigned char> params;        // default values of the parameters
  std::vector<std::type_index> types;       // the types of the graph's tasks
  std::uint32_t first_local = 0;            // a part of a batch: the index in the batch of the part's first task
  std::vector<std::uint16_t> type_numbers;  // of each task: its index in `types`; empty if there is only one type
  ChangingValue stage_of;                   // of each task: its index in `stages`
  std::vector<std::string> stages;
  // Of compiled graphs:
  std::vector<bool> in_gang;                   // of each task: whether it is in a gang
  std::vector<std::uint32_t> dependent_bytes;  // of each task: bytes of operands that other tasks write
  void* schedule = nullptr;
  void* operands = nullptr;
  std::uint64_t operand_bytes = 0;

  void* phases = nullptr;  // of a phased graph

  // Its extent in the graph arena, in units, and what it counts towards the limits.
  std::uint64_t first_unit = 0, first_bank = 0, bank_units = 0;
  std::uint32_t records = 0, edges = 0;
  bool placed = false;  // the extent is allocated

  std::uint64_t upload = 0;           // its number, for Engine::finish_uploads()
  std::atomic<bool> uploaded{false};  // the upload is known to be on the device

  std::vector<std::uint32_t> free_banks;  // banks of counters; guarded by the dispatcher's mutex
};

/// The graph of a run that begins with a task in its message, of so many tasks in all.
std::shared_ptr<LoadedGraph> graph_of_message(const DeviceState& dev, std::uint32_t tasks, std::uint32_t result_bytes);
/// The library's own task that such a run of a batch begins with, see runtime/dynamic/task_list.hpp. Without records it does
/// nothing.
TaskRecord fetch_task(const FetchBatch& batch);

}  // namespace flywheel::detail
