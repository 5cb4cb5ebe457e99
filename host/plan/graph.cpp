#include "graph.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>

#include "../../runtime/records/run.hpp"
#include "task_name.hpp"

namespace flywheel {
using namespace detail;

namespace {
std::uint64_t next_graph_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: the ids only have to differ
}

[[noreturn]] void wrong_graph(const std::string& task) {
  throw GraphError(task +
                   " is to wait for a task of another graph: add both to one graph, or submit the graphs one "
                   "after the other");
}
}  // namespace

namespace detail {
std::string type_name(std::type_index type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : type.name();
}

void refuse_case(std::uint32_t number) {
  throw GraphError("when() names case " + std::to_string(number) + ", and a task has cases 0 to " +
                   std::to_string(kMostCases - 1) + ": let a task choose between tasks that choose in turn");
}

void ResultLayout::too_many(std::uint64_t bytes, std::type_index type) {
  throw CapacityError("the result of one more " + type_name(type) + " takes those of the graph to " + std::to_string(bytes) +
                      " bytes, and " + std::to_string(kMost) + " is the most: write results to a buffer, or split the graph");
}
}  // namespace detail

Graph::Graph() : id_(next_graph_id()) {}

void Graph::swap(Graph& other) noexcept {
  std::swap(tasks_, other.tasks_);
  std::swap(gangs_, other.gangs_);
  std::swap(control_, other.control_);
  std::swap(stages_, other.stages_);
  std::swap(stage_, other.stage_);
  std::swap(has_parts_, other.has_parts_);
  std::swap(has_block_tasks_, other.has_block_tasks_);
  std::swap(first_not_compiled_, other.first_not_compiled_);
  std::swap(params_, other.params_);
  std::swap(results_, other.results_);
  std::swap(phase_, other.phase_);
  std::swap(phased_, other.phased_);
  std::swap(id_, other.id_);
}

void Graph::refuse_waits(std::type_index type, const After& waits) const {
  if (names_others(waits)) wrong_graph("a " + type_name(type));
  throw GraphError("a " + type_name(type) +
                   " names a dependency in a phased graph: the phases order its tasks; "
                   "leave out after(), or leave out phase()");
}

void Graph::add_edge(std::uint32_t before, std::uint64_t before_graph, std::uint32_t then, std::uint64_t then_graph) {
  if (before_graph != id_ || then_graph != id_) wrong_graph("task " + std::to_string(then));
  if (phased_) throw GraphError("edge() in a phased graph: the phases order its tasks");
  tasks_.add_edge(before, then);
}

std::uint32_t Graph::known_task(std::uint32_t task, std::uint64_t graph) const {
  if (graph != id_)
    throw GraphError("task " + std::to_string(task) + " is of another graph: name tasks that this graph's add() returned");
  return task;
}

void Graph::place_node(std::uint32_t task, std::uint64_t graph, std::uint32_t worker) {
  tasks_.attributes(known_task(task, graph)).worker = worker;
}

void Graph::add_gang(std::vector<std::uint32_t> tasks) {
  if (tasks.empty()) return;
  std::vector<bool> seen(size());
  for (const std::uint32_t task : tasks) {
    if (tasks_[task].gang != kNoGang || seen[task])
      throw GraphError(name_of(*this, task) +
                       " is named twice in Graph::together(): name all that run together in one call, each "
                       "once");
    seen[task] = true;
  }
  for (const std::uint32_t task : tasks) tasks_.attributes(task).gang = static_cast<std::uint32_t>(gangs_.size());
  gangs_.push_back(std::move(tasks));
}

void Graph::add_loop(std::uint32_t first, std::uint32_t last) {
  if (phased_) throw GraphError("loop() in a phased graph: the phases order its tasks, see Runtime::submit() with `repeat`");
  for (const GraphLoop& other : control_.loops())
    if (other.last == last) throw GraphError(name_of(*this, last) + " ends two loops: add a task that ends the outer one");
  control_.add({first, last});
}

void Graph::phase() {
  if (!control_.loops().empty()) throw GraphError("phase() in a graph with a loop: use one or the other");
  if (tasks_.has_edges()) throw GraphError("phase() in a graph whose tasks name dependencies: use one or the other");
  phased_ = true;
  if (size() && tasks_.phase_of(size() - 1) == phase_) ++phase_;
}

void Graph::end_grid() {
  tasks_.set_grid(phase_);
  phase();
}

std::uint32_t Graph::add_param(const void* value, std::size_t bytes, std::size_t alignment) {
  const std::size_t at = (params_.size() + alignment - 1) / alignment * alignment;
  if (at + bytes > kParamBytes)
    throw CapacityError("the parameters of a graph take more than " + std::to_string(kParamBytes) +
                        " bytes: put large ones in a device buffer");
  params_.resize(at + bytes);
  std::memcpy(params_.data() + at, value, bytes);
  return static_cast<std::uint32_t>(at);
}

void Graph::stage(const std::string& name) {
  const auto found = std::find(stages_.begin(), stages_.end(), name);
  stage_ = static_cast<std::uint32_t>(found - stages_.begin());
  if (found == stages_.end()) stages_.push_back(name);
}

namespace {
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// The tasks of each frame, by the frame's title; "" for tasks without a frame.
std::map<std::string, std::vector<std::uint32_t>> frames_of(const Graph& graph) {
  std::map<std::string, std::vector<std::uint32_t>> frames;
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const std::string& stage = graph.stages()[graph.tasks().stage_of(task)];
    frames[graph.phase_count() ? "phase " + std::to_string(graph.tasks().phase_of(task)) + (stage.empty() ? "" : ", " + stage)
                               : stage]
        .push_back(task);
  }
  return frames;
}
std::string arrow(std::uint32_t from, std::uint32_t to) { return "  t" + std::to_string(from) + " -> t" + std::to_string(to); }

/// The cases on an edge; dashed, if its task waits for any.
std::string edge_style(const ControlList& control, std::uint32_t before, std::uint32_t task) {
  std::string cases;
  for (const ControlList::Choice& choice : control.choices_of(task))
    if (choice.by.task == before) cases += (cases.empty() ? "case " : ", ") + std::to_string(choice.by.number);
  std::string style = control.waits_for_any(task) ? "style=dashed" : "";
  if (!cases.empty()) style += (style.empty() ? "" : " ") + std::string("label=") + quoted(cases);
  return style.empty() ? "" : " [" + style + "]";
}
}  // namespace

std::string Graph::to_dot() const {
  std::string text = "digraph {\n  node [shape=box]\n";
  std::uint32_t frame = 0;
  for (const auto& [title, tasks] : frames_of(*this)) {
    if (!title.empty()) text += "  subgraph cluster_" + std::to_string(frame++) + " {\n  label=" + quoted(title) + "\n";
    for (const std::uint32_t task : tasks)
      text +=
          "  t" + std::to_string(task) + " [label=" + quoted(std::to_string(task) + " " + type_name(tasks_[task].type)) + "]\n";
    if (!title.empty()) text += "  }\n";
  }
  for (std::uint32_t task = 0; task < size(); ++task)
    for (const std::uint32_t before : tasks_.predecessors(task))
      text += arrow(before, task) + edge_style(control_, before, task) + "\n";
  for (const GraphLoop& loop : control_.loops()) text += arrow(loop.last, loop.first) + " [label=again constraint=false]\n";
  return text + "}\n";
}

}  // namespace flywheel
