// A loaded graph: checked, placed in device memory, ready to be submitted any number of times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "../../runtime/records/graph.hpp"
#include "../../runtime/records/run.hpp"

namespace flywheel {

struct Core;

/// Where a graph lies. Freed when the last Executable and the last run of it are gone, see Loader::load().
struct LoadedGraph {
  LoadedGraph(std::shared_ptr<Core> owner) : core(std::move(owner)) {}
  LoadedGraph(const LoadedGraph&) = delete;
  LoadedGraph& operator=(const LoadedGraph&) = delete;

  /// "task 7 (Saxpy)", with its stage if it has one, for messages. `local` is the index given by Graph::add().
  std::string task_name(std::uint32_t local) const;

  std::shared_ptr<Core> core;
  std::uint64_t graph_id = 0;
  GraphKind kind = GraphKind::dynamic;
  std::uint32_t exec = 0;
  std::uint32_t first_record = 0;
  std::uint32_t task_count = 0;
  std::uint32_t first_edge = 0;
  std::uint32_t result_bytes = 0;
  RunConstants constants{};           // of every run of it, but for what admission fills in
  std::vector<unsigned char> params;  // default values
  std::vector<std::type_index> types;
  std::vector<std::uint32_t> stage_of;  // each task, in `stages`
  std::vector<std::string> stages;
  std::vector<bool> in_gang;          // of each task: it waits for others while it runs
  std::vector<std::uint32_t> dependent_bytes;  // of each task's operands, what other tasks write
  void* counters = nullptr;
  void* phases = nullptr;
  void* schedule = nullptr;  // of a compiled graph
  void* operands = nullptr;
  std::uint64_t operand_bytes = 0;
  bool placed = false;    // something was taken from the heap
  bool reserved = false;  // ranges of records and edges are taken

  std::vector<std::uint32_t> free_banks;  // of counters; guarded by the dispatcher's mutex
};

/// A handle a program keeps. Copies share the loaded graph.
class Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<LoadedGraph> graph) : graph_(std::move(graph)) {}
  std::uint32_t size() const { return graph_ ? graph_->task_count : 0; }
  const std::shared_ptr<LoadedGraph>& loaded() const { return graph_; }

 private:
  std::shared_ptr<LoadedGraph> graph_;
};

}  // namespace flywheel
