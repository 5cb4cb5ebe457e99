// A CPU worker's part in a compiled run: one thread does the work of all roles in turn. CpuExecutor::run_compiled()
// calls it.
#pragma once

#include "../compiled/operands.hpp"
#include "../records/trace.hpp"
#include "thrown.hpp"

namespace flywheel::detail {

/// Runs worker `worker`'s stream of the compiled run in `slot`.
template <class P>
class CpuCompiled {
 public:
  FLYWHEEL_TASK CpuCompiled(const DeviceState& dev, const CpuTasks<P>& tasks, std::uint16_t slot, std::uint32_t worker,
                            unsigned char* scratch)
      : run_(join_compiled<P>(dev, slot, worker)),
        tasks_(tasks),
        scratch_(scratch),
        waits_(run_.traced ? dev.trace : TraceBuffers{}, worker, TraceRole::control),
        bodies_(run_.traced ? dev.trace : TraceBuffers{}, worker, TraceRole::compute) {
    show_joined<P>(dev.heartbeats[worker], slot, dev.runs[slot].line.constants.generation);
  }

  FLYWHEEL_TASK void operator()() {
    const StreamEnd end =
        follow_stream<P>(run_, waits_, NothingToDo{}, [&](std::uint32_t i, std::uint32_t pass) { return step(i, pass); });
    waits_.close();
    bodies_.close();
    leave_compiled<P>(run_);
    if (run_.is_leader && !end.aborted) end_compiled<P>(run_, end.passes);
  }

 private:
  /// One instruction: waits for the tasks before it, runs its body unless one of them failed, and signals. False to
  /// leave.
  FLYWHEEL_TASK bool step(std::uint32_t i, std::uint32_t pass) {
    if (i == 0) operands_ = run_.stream.operands, failed_ = false;
    const Instruction& instruction = run_.stream.instructions[i];
    const std::uint32_t task = instruction.record.header.local;
    const std::uint64_t begin = waits_.now();
    const Before before = wait_before<P>(run_, instruction, pass, NothingToDo{});
    waits_.write(TraceKind::wait, begin, task, pass);
    if (before == Before::aborted) return false;
    failed_ |= before == Before::failed;
    const unsigned char* operands = operands_;
    operands_ += padded_operands(instruction.operand_bytes);
    if (instruction.flags & kOnlyWaits) return true;
    TaskContext context{
        run_.dev,        &instruction.record.header, run_.state, {0, static_cast<std::uint16_t>(run_.slot), false}, run_.worker,
        {0, 0, 0, pass}, stamp_of(run_, pass)};
    if (!failed_) run_body(instruction, context, operands);
    failed_ |= context.outcome.code != 0;
    signal_done<P>(run_, instruction, pass, context.outcome, failed_);
    return true;
  }

  /// Runs the compute part with its operands, which begin at `from`, and checks how it used them.
  FLYWHEEL_TASK void run_body(const Instruction& instruction, TaskContext& context, const unsigned char* from) {
    const std::uint64_t begin = bodies_.now();
    Heartbeat& heart = run_.dev->heartbeats[run_.worker];
    begin_part<P>(heart, Item{context.header->local, context.item.run, false}.pack());
    CpuWorkerBlock<P> block(tasks_, context, scratch_);
    CpuOperands operands(from, instruction.operand_bytes);
    const bool as_said = tasks_.add_dependents(instruction.record, operands) == instruction.dependent_pages;
    if (as_said) CatchingTasks::compute(instruction.record, block, operands);
    const Status fault = as_said ? operands.end() : Status::operands_misnamed;
    if (!context.outcome.code) context.outcome.code = static_cast<std::uint32_t>(fault);
    end_body<P>(heart);
    bodies_.write(TraceKind::body, begin, instruction.record.header.local, context.outcome.iteration,
                  instruction.operand_bytes);
  }

  CompiledRun run_;
  const CpuTasks<P>& tasks_;
  unsigned char* scratch_;
  const unsigned char* operands_ = nullptr;  // of the next instruction
  bool failed_ = false;                      // a task of this pass has failed, on this worker or before one of its tasks
  TraceWriter<P> waits_, bodies_;
};

}  // namespace flywheel::detail
