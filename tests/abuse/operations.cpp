#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
constexpr Operation kOperations[] = {
    {"start_runtime", 10, start_runtime},
    {"start_badly", 3, start_badly},
    {"drop_runtime", 2, drop_runtime},
    {"shut_down", 1, shut_down},
    {"ask_runtime", 8, ask_runtime},
    {"break_engine", 1, break_engine},
    {"allocate", 12, allocate},
    {"allocate_too_much", 1, allocate_too_much},
    {"copy_buffer", 20, copy_buffer},
    {"copy_badly", 6, copy_badly},
    {"move_buffer", 6, move_buffer},
    {"drop_buffer", 8, drop_buffer},
    {"load_graph", 24, load_graph},
    {"load_until_full", 1, load_until_full},
    {"drop_executable", 8, drop_executable},
    {"build_badly", 10, build_badly},
    {"load_badly", 8, load_badly},
    {"throw_from_callback", 3, throw_from_callback},
    {"submit", 60, submit},
    {"submit_badly", 10, submit_badly},
    {"submit_after", 3, submit_after},
    {"submit_follower", 16, submit_follower},
    {"submit_single", 20, submit_single},
    {"submit_range", 8, submit_range},
    {"submit_mixed", 4, submit_mixed},
    {"submit_new_badly", 4, submit_new_badly},
    {"finish_work", 24, finish_work},
    {"drop_work", 6, drop_work},
    {"yield_runtime", 6, yield_runtime},
    {"pause_runtime", 3, pause_runtime},
    {"wait", 20, wait},
    {"wait_for", 15, wait_for},
    {"look", 30, look},
    {"read_stream", 16, read_stream},
    {"cancel", 16, cancel},
    {"misuse_run", 8, misuse_run},
    {"copy_run", 6, copy_run},
    {"drop_run", 16, drop_run},
    {"open_queue", 4, open_queue},
    {"take_finished", 16, take_finished},
    {"wait_for_several", 8, wait_for_several},
    {"call_back", 10, call_back},
    {"await_run", 8, await_run},
    {"fork_child", 1, fork_child},
    {"send_signal", 6, send_signal},
    {"be_a_thread", 3, be_a_thread},
    {"wait_together", 2, wait_together},
    {"leave_to_thread_exit", 2, leave_to_thread_exit},
};

constexpr std::uint32_t all_weights() {
  std::uint32_t sum = 0;
  for (const Operation& one : kOperations) sum += one.weight;
  return sum;
}

const Operation& draw(Dice& dice) {
  std::uint32_t left = dice.below(all_weights());
  for (const Operation& one : kOperations) {
    if (left < one.weight) return one;
    left -= one.weight;
  }
  return kOperations[0];
}

/// Nothing may be thrown that the operation does not expect.
void act_checked(Actor& actor, const Operation& operation) {
  try {
    operation.act(actor);
  } catch (const std::exception& error) {
    finding(std::string(operation.name) + " ends with an exception: " + error.what());
  }
}
}  // namespace

void act_once(Actor& actor, std::uint64_t number) {
  actor.number = number;
  actor.depth = 0;
  const Operation& operation = draw(actor.dice);
  actor.journal.begin(number, operation.name);
  const std::int64_t began = now_ns();
  act_checked(actor, operation);
  actor.journal.end();
  count(operation.name, now_ns() - began);
}

void act_within(Actor& actor) {
  constexpr std::uint32_t kDeepest = 2;
  if (actor.depth >= kDeepest) return;
  ++actor.depth;
  const Operation& operation = draw(actor.dice);
  actor.journal.note(" [%s", operation.name);
  act_checked(actor, operation);
  actor.journal.note("]");
  --actor.depth;
}

}  // namespace flywheel::abuse
