// Compiled stages that depend on all of the stage before, run after run, against a serial oracle.
#pragma once

#include "catch.hpp"
#include "support/compiled_tasks.hpp"

namespace flywheel::testing {

/// Keeps the oracle's words beside the device's.
class StageRuns {
 public:
  StageRuns(Runtime& runtime, std::uint32_t stages, std::uint32_t width, std::uint32_t delay)
      : runtime_(runtime),
        mixers_(stages, width),
        rows_(mixers_.words()),
        words_(runtime.upload(rows_)) {
    executable_ = runtime.load(mixers_.graph(words_.data(), delay), compiled);
  }

  Run submit(std::uint32_t passes) {
    expect(passes);
    return runtime_.submit(executable_, repeat(passes));
  }
  const Executable& executable() const { return executable_; }
  /// That a run of so many passes has been submitted otherwise.
  void expect(std::uint32_t passes) { mixers_.advance(rows_, passes); }
  /// After all runs have ended: how many words differ.
  std::size_t differences() const {
    const std::vector<std::uint64_t> got = words_.read();
    std::size_t count = 0;
    for (std::size_t i = 0; i < got.size(); ++i) count += got[i] != rows_[i];
    return count;
  }

 private:
  Runtime& runtime_;
  MixerStages mixers_;
  std::vector<std::uint64_t> rows_;
  Buffer<std::uint64_t> words_;
  Executable executable_;
};

/// Whether a task after every second one borrows the places of handoffs.
enum class Borrows { no, yes };

/// Tasks with operands of odd sizes; what all their parts must have left after so many passes.
class OperandRuns {
 public:
  /// The GPU's 8 warps sum all bytes each.
  OperandRuns(Runtime& runtime, std::uint32_t tasks, Walk walk, std::uint32_t delay, Borrows borrows = Borrows::no)
      : runtime_(runtime),
        notes_(runtime.allocate<OperandNotes>(1)),
        tasks_(tasks) {
    constexpr std::uint32_t kSizes[] = {1, 15, 16, 128, kPageBytes - 1, kPageBytes, kPageBytes + 1, 3 * kPageBytes + 1, 200000};
    Graph graph;
    std::vector<TaskRef<>> added;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      const std::uint32_t bytes = walk == Walk::hoards ? 1 + i * 61 % kPageBytes : kSizes[i % std::size(kSizes)];
      const Packed task{notes_.data(), i + 1, bytes, walk, i % 3 ? delay : 0};
      sum_ += operand_sum(task.seed, bytes);
      After before;  // a third waits for a task of long ago, a third for the last
      if (i >= 3 && i % 3) before = after(added[i % 3 == 1 ? i / 2 : i - 1]);
      added.push_back(graph.add(task, before));
      if (borrows == Borrows::yes && i % 2) graph.add(Borrowing{borrowed_.data(), i, (16u << 10) + kHandoffs * kHandoffBytes});
    }
    executable_ = runtime.load(graph, compiled);
  }

  Run submit(std::uint32_t passes) {
    passes_ += passes;
    return runtime_.submit(executable_, repeat(passes));
  }
  const Executable& executable() const { return executable_; }
  OperandNotes seen() const { return notes_.read()[0]; }
  OperandNotes borrowed() const { return borrowed_.read()[0]; }
  /// After all runs have ended.
  void check() const {
    const OperandNotes got = seen();
    CHECK(got.wrong == 0);
    CHECK(got.portable == 0);
    CHECK(borrowed().wrong == 0);
    CHECK(got.computes == tasks_ * passes_);
    CHECK(got.sum == sum_ * passes_ * (runtime_.on_gpu() ? Packed::kWarps : 1));
    if (runtime_.on_gpu()) CHECK(got.stores == tasks_ * passes_);
  }

 private:
  Runtime& runtime_;
  Buffer<OperandNotes> notes_;
  Buffer<OperandNotes> borrowed_ = runtime_.allocate<OperandNotes>(1);
  std::uint32_t tasks_;
  std::uint64_t sum_ = 0;
  std::uint32_t passes_ = 0;
  Executable executable_;
};

}  // namespace flywheel::testing
