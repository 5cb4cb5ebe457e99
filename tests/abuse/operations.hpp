// The operations. Each draws what it does from the actor's dice, and checks it.
#pragma once

#include "abuse/checks.hpp"

namespace flywheel::abuse {

struct Operation {
  const char* name;
  std::uint32_t weight;
  void (*act)(Actor& actor);
};

/// Draws one and does it.
void act_once(Actor& actor, std::uint64_t number);
/// The same for somebody who acts on behalf of the actor, on a thread of its own or not.
void act_within(Actor& actor);

// runtime_operations.cpp
void start_runtime(Actor& actor);
void start_badly(Actor& actor);
void drop_runtime(Actor& actor);
void shut_down(Actor& actor);
void ask_runtime(Actor& actor);
void break_engine(Actor& actor);

// buffer_operations.cpp
void allocate(Actor& actor);
void allocate_too_much(Actor& actor);
void copy_buffer(Actor& actor);
void copy_badly(Actor& actor);
void move_buffer(Actor& actor);
void drop_buffer(Actor& actor);

// graph_operations.cpp
void load_graph(Actor& actor);
void load_until_full(Actor& actor);
void drop_executable(Actor& actor);
/// What is special about one task of such a graph or batch, and its argument.
Special choose_special(Actor& actor, Kind kind);
std::uint32_t choose_argument(Actor& actor, const Fate& fate, Special special);
/// A graph that can be loaded; in `spec`, what it does.
Graph make_graph(Actor& actor, const Room& room, Spec& spec);

// broken_operations.cpp
void build_badly(Actor& actor);
void load_badly(Actor& actor);
void throw_from_callback(Actor& actor);

// submit_operations.cpp
void submit(Actor& actor);
void submit_badly(Actor& actor);
void submit_after(Actor& actor);
void submit_follower(Actor& actor);
/// Null if it could not be submitted.
std::shared_ptr<RunCase> submit_one(Actor& actor, const std::shared_ptr<LoadedCase>& loaded);

// new_work_operations.cpp
void submit_single(Actor& actor);
void submit_range(Actor& actor);
void submit_mixed(Actor& actor);
void submit_new_badly(Actor& actor);
void finish_work(Actor& actor);
void drop_work(Actor& actor);
void yield_runtime(Actor& actor);
void pause_runtime(Actor& actor);

// run_operations.cpp
void wait(Actor& actor);
void wait_for(Actor& actor);
void look(Actor& actor);
void read_stream(Actor& actor);
void cancel(Actor& actor);
void misuse_run(Actor& actor);
void copy_run(Actor& actor);
void drop_run(Actor& actor);
/// Waits for the end, and checks it.
void finish(RunCase& one);

// collect_operations.cpp
void open_queue(Actor& actor);
void take_finished(Actor& actor);
void wait_for_several(Actor& actor);
void call_back(Actor& actor);
void await_run(Actor& actor);

// process_operations.cpp
void fork_child(Actor& actor);
void send_signal(Actor& actor);
void be_a_thread(Actor& actor);
void wait_together(Actor& actor);
void leave_to_thread_exit(Actor& actor);
void handle_signals();

std::shared_ptr<Room> some_room(Actor& actor);

}  // namespace flywheel::abuse
