#include "control_links.hpp"

#include <algorithm>

#include "../plan/task_name.hpp"

namespace flywheel::detail {

namespace {
/// Checks that a loop has one way in and one way out.
class LoopCheck {
 public:
  LoopCheck(const Graph& graph, const GraphLinks& links, const GraphLoop& loop)
      : graph_(graph),
        links_(links),
        loop_(loop),
        inside_(graph.size(), false) {}

  void operator()() {
    visit(loop_.first);
    while (!open_.empty()) {
      const std::uint32_t task = open_.back();
      open_.pop_back();
      if (task != loop_.last) follow(task);
    }
    if (!inside_[loop_.last]) refuse(loop_.last, "does not come after the first: let it wait for the tasks between them");
    for (std::uint32_t task = 0; task < graph_.size(); ++task)
      if (inside_[task] && task != loop_.first) check_entry(task);
  }

 private:
  void visit(std::uint32_t task) {
    if (inside_[task]) return;
    inside_[task] = true;
    open_.push_back(task);
  }
  void follow(std::uint32_t task) {
    const std::uint32_t first = links_.first(task), count = links_.count(task);
    if (!count) refuse(task, "does not lead to the last: let the last one wait for it");
    for (std::uint32_t edge = first; edge < first + count; ++edge) visit(links_.successors()[edge]);
  }
  void check_entry(std::uint32_t task) const {
    for (const std::uint32_t before : graph_.tasks().predecessors(task))
      if (!inside_[before])
        refuse(task, "waits for " + name_of(graph_, before) + ", which is outside: let the first one wait for that");
  }
  [[noreturn]] void refuse(std::uint32_t task, const std::string& why) const {
    throw GraphError("in the loop from " + name_of(graph_, loop_.first) + " to " + name_of(graph_, loop_.last) + ", " +
                     name_of(graph_, task) + " " + why);
  }

  const Graph& graph_;
  const GraphLinks& links_;
  const GraphLoop loop_;
  std::vector<bool> inside_;
  std::vector<std::uint32_t> open_;
};
}  // namespace

ControlLinks::ControlLinks(const Graph& graph, const GraphLinks& links) {
  if (graph.control().empty()) return;
  labels_.assign(links.edges(), 0);
  flags_.assign(graph.size(), 0);
  loop_begins_.assign(graph.size(), 0);
  label_choices(graph, links);
  label_joins(graph, links);
  for (const GraphLoop& loop : graph.control().loops()) {
    LoopCheck(graph, links, loop)();
    flags_[loop.last] |= kTaskLoops;
    loop_begins_[loop.last] = loop.first;
  }
}

void ControlLinks::label_choices(const Graph& graph, const GraphLinks& links) {
  for (const ControlList::Choice& choice : graph.control().choices())
    add_label(links, choice.by.task, choice.task, kFirstCase << choice.by.number);
}
void ControlLinks::label_joins(const Graph& graph, const GraphLinks& links) {
  for (const std::uint32_t task : graph.control().any())
    for (const std::uint32_t before : graph.tasks().predecessors(task)) add_label(links, before, task, kAnyEdge);
}

/// The successors of a task rise.
void ControlLinks::add_label(const GraphLinks& links, std::uint32_t before, std::uint32_t task, std::uint32_t label) {
  const auto own = links.successors().subspan(links.first(before), links.count(before));
  const auto place = std::lower_bound(own.begin(), own.end(), task) - own.begin();
  labels_[links.first(before) + static_cast<std::size_t>(place)] |= label;
  flags_[before] |= kTaskControls;
}

void refuse_control(const Graph& graph) {
  const ControlList& control = graph.control();
  const auto refuse = [&](std::uint32_t task, const char* call) {
    throw GraphError(name_of(graph, task) + " is named with " + call +
                     ", and a compiled graph has a plan that is fixed: load it without `compiled`");
  };
  if (!control.choices().empty()) refuse(control.choices()[0].task, "when()");
  if (!control.any().empty()) refuse(control.any()[0], "after_any()");
  if (!control.loops().empty()) refuse(control.loops()[0].last, "Graph::loop()");
}

}  // namespace flywheel::detail
