// Compares what a run left behind with the oracle.
#pragma once

#include <algorithm>
#include <sstream>

#include "support/graph_oracle.hpp"

namespace flywheel::testing {

/// What was seen of one run.
struct Evidence {
  std::uint32_t code = 0;  // as a RunError gives it: the library's status, or kUserStatus + a code
  std::string message;     // of the RunError
  std::uint32_t iterations = 0;
  bool cancel_requested = false;
  bool compiled = false;
  Account account{0};
  std::uint32_t early = 0;
  std::vector<std::uint64_t> emitted;                            // in the order of arrival
  std::vector<std::pair<std::uint32_t, std::uint64_t>> results;  // node and value; of good runs only
};

class RunCheck {
 public:
  RunCheck(const Case& all, std::size_t run, const Evidence& seen)
      : graph_(all.graph),
        run_(all.runs[run]),
        number_(run),
        seen_(seen),
        oracle_(graph_, run_) {}

  /// Empty, or what is wrong.
  std::string operator()() {
    if (seen_.early) differ("predecessors that had not run when their successor looked", kNever, 0, seen_.early);
    // A worker of a compiled run that has heard of a failure does nothing more in that pass.
    const bool partly = seen_.code != 0 && (seen_.cancel_requested || seen_.compiled);
    if (partly) check_cancelled();
    else check_finished();
    return problem_.str();
  }
  const Oracle& oracle() const { return oracle_; }

 private:
  void differ(const std::string& what, std::uint32_t task, std::uint64_t expected, std::uint64_t got) {
    if (++problems_ > 5) return;
    problem_ << "seed " << graph_.seed << ", " << graph_.shape << " graph of " << graph_.size() << " tasks, run " << number_
             << " (repeat " << run_.repeat << (seen_.cancel_requested ? ", cancelled" : "") << ", code " << seen_.code << "): ";
    if (task != kNever) problem_ << "task " << task << ": ";
    problem_ << what << ", expected " << expected << ", got " << got << "\n";
  }
  void compare(const char* what, std::uint32_t task, std::uint64_t expected, std::uint64_t got) {
    if (expected != got) differ(what, task, expected, got);
  }

  void check_finished() {
    oracle_.finish();
    check_fault();
    compare("passes", kNever, oracle_.completed(), seen_.iterations);
    const Account& want = oracle_.account();
    for (std::uint32_t id = 0; id < graph_.size(); ++id) {
      compare("executions", id, want.count[id], seen_.account.count[id]);
      compare("value", id, want.value[id], seen_.account.value[id]);
      compare("spawned tasks", id, want.sprouts[id], seen_.account.sprouts[id]);
      compare("value of spawned tasks", id, want.extra[id], seen_.account.extra[id]);
    }
    check_stream(oracle_.emitted());
    for (const auto& [id, value] : seen_.results) compare("result", id, want.value[id], value);
  }

  void check_fault() {
    if (!oracle_.failed()) return compare("status", kNever, 0, seen_.code);
    for (const Fault& fault : oracle_.faults())
      if (kUserStatus + fault.code == seen_.code) return check_name(fault.node);
    differ("status is not one of the failing tasks' codes, such as", kNever, kUserStatus + oracle_.faults().begin()->code,
           seen_.code);
  }
  void check_name(std::uint32_t node) {
    const auto local = std::find(graph_.order.begin(), graph_.order.end(), node) - graph_.order.begin();
    const std::string name = "task " + std::to_string(local) + " (";
    if (seen_.message.find(name) == std::string::npos)
      differ("the message does not say " + name + ": " + seen_.message, node, 0, 0);
  }

  /// A run that was cancelled, or a compiled one that failed, stops within a pass: some tasks have run once
  /// more than others, all with their predecessors.
  void check_cancelled() {
    while (oracle_.completed() < seen_.iterations && !oracle_.over()) oracle_.pass();
    const Account before = oracle_.account();
    std::vector<std::uint64_t> stream = oracle_.emitted();
    const std::uint32_t pass = oracle_.completed();
    if (pass < seen_.iterations) return differ("passes, at most", kNever, pass, seen_.iterations);
    if (!oracle_.over()) oracle_.pass();
    if (seen_.code != static_cast<std::uint32_t>(Status::cancelled)) check_fault();
    for (std::uint32_t id = 0; id < graph_.size(); ++id) check_partly(id, before, oracle_.account(), pass, stream);
    check_stream(stream);
  }
  void check_partly(std::uint32_t id, const Account& before, const Account& after, std::uint32_t pass,
                    std::vector<std::uint64_t>& stream) {
    const Account& got = seen_.account;
    const bool ran = got.count[id] != before.count[id];
    compare("executions at most", id, ran ? after.count[id] : before.count[id], got.count[id]);
    compare("value", id, ran ? after.value[id] : before.value[id], got.value[id]);
    if (!ran) return check_idle(id, before);
    oracle_.add_emitted(stream, id, pass, after.value[id]);
    const NodeSpec& node = graph_.nodes[id];
    if (got.sprouts[id] > after.sprouts[id]) differ("spawned tasks, at most", id, after.sprouts[id], got.sprouts[id]);
    for (std::uint32_t i = 0; i < node.before_count; ++i) check_complete(graph_.before_of(node)[i], after);
  }
  void check_idle(std::uint32_t id, const Account& before) {
    compare("spawned tasks of a skipped task", id, before.sprouts[id], seen_.account.sprouts[id]);
    compare("value of spawned tasks of a skipped task", id, before.extra[id], seen_.account.extra[id]);
  }
  /// A task whose successor has run.
  void check_complete(std::uint32_t id, const Account& after) {
    compare("executions of a predecessor", id, after.count[id], seen_.account.count[id]);
    compare("value of a predecessor's spawned tasks", id, after.extra[id], seen_.account.extra[id]);
  }

  void check_stream(std::vector<std::uint64_t> want) {
    std::vector<std::uint64_t> got = seen_.emitted, last(graph_.size(), 0);
    for (const std::uint64_t value : got) {
      std::uint64_t& before = last[std::min<std::uint64_t>(value >> 44, graph_.size() - 1)];
      if (before > value) differ("order of streamed values", static_cast<std::uint32_t>(value >> 44), before, value);
      before = value;
    }
    std::sort(want.begin(), want.end());
    std::sort(got.begin(), got.end());
    compare("number of streamed values", kNever, want.size(), got.size());
    if (want.size() == got.size() && want != got)
      differ("streamed values", kNever, *std::mismatch(want.begin(), want.end(), got.begin()).first, 0);
  }

  const GraphSpec& graph_;
  const RunSpec& run_;
  std::size_t number_;
  const Evidence& seen_;
  Oracle oracle_;
  std::ostringstream problem_;
  int problems_ = 0;
};

}  // namespace flywheel::testing
