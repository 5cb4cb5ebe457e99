#include "single_tasks.hpp"

#include <cstring>

#include "../engine/thrown_texts.hpp"
#include "../plan/task_name.hpp"

namespace flywheel::detail {

namespace {
using P = CpuPlatform;
}  // namespace

/// Holds the lock of a place or a stripe. It is never held across a wait, so the others spin.
class SingleTasks::Locked {
 public:
  explicit Locked(std::atomic_flag& lock) : lock_(lock) {
    // Acquire: pairs with the release below, on other threads.
    for (std::uint32_t spins = 0; lock_.test_and_set(std::memory_order_acquire); ++spins) cpu_pause(spins);
  }
  // Release: pairs with the acquire above, for what the lock guards.
  ~Locked() { lock_.clear(std::memory_order_release); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  std::atomic_flag& lock_;
};

SingleTasks::SingleTasks(const DeviceState& dev, InboxWriter& inbox) : dev_(dev), inbox_(inbox), places_(dev.single_slots) {
  // Any stripe may come to hold all of them.
  for (Stripe& stripe : stripes_) stripe.free.reserve(dev.single_slots);
  for (std::uint32_t slot = 0; slot < dev.single_slots; ++slot) stripes_[slot % kStripes].free.push_back(dev.run_slots + slot);
}
SingleTasks::~SingleTasks() = default;

/// The stripe of the calling thread. Relaxed: the numbers only have to differ.
std::uint32_t SingleTasks::own_stripe() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const std::uint32_t own = threads.fetch_add(1, std::memory_order_relaxed) % kStripes;
  return own;
}

/// Takes a free slot, from another thread's stripe if this one's has none. False if there is none.
bool SingleTasks::take_free(std::uint32_t own, std::uint32_t& slot) {
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    Stripe& stripe = stripes_[(own + i) % kStripes];
    const Locked here(stripe.lock);
    if (stripe.free.empty()) continue;
    slot = stripe.free.back();
    stripe.free.pop_back();
    return true;
  }
  return false;
}

/// Sequentially consistent: pairs with the adds in try_submit() and take_up(), see Dispatcher::submit().
std::uint32_t SingleTasks::in_flight() const {
  std::uint32_t all = 0;
  for (const Stripe& stripe : stripes_) all += stripe.in_flight.load(std::memory_order_seq_cst);
  return all;
}

/// Relaxed: pairs with the adds in try_submit(); only the count matters.
std::uint64_t SingleTasks::submitted() const {
  std::uint64_t all = 0;
  for (const Stripe& stripe : stripes_) all += stripe.submitted.load(std::memory_order_relaxed);
  return all;
}

std::shared_ptr<SingleTask> SingleTasks::try_submit(TaskRecord record, std::type_index type, Priority priority) {
  const std::uint32_t own = own_stripe();
  std::uint32_t slot = 0;
  if (!take_free(own, slot)) return nullptr;
  Place& place = places_[slot - dev_.run_slots];
  std::shared_ptr<SingleTask> task;
  {
    const Locked here(place.lock);
    task = place.task = std::make_shared<SingleTask>(type, slot, ++place.generation);
    place.stripe = own;
    place.taken.store(place.generation, std::memory_order_relaxed);  // relaxed: see Place
  }
  // Sequentially consistent, before the message: see in_flight().
  stripes_[own].in_flight.fetch_add(1, std::memory_order_seq_cst);
  stripes_[own].submitted.fetch_add(1, std::memory_order_relaxed);
  Message message{};
  message.run.op = static_cast<std::uint32_t>(InboxOp::submit);
  message.run.slot = slot;
  message.run.generation = task->generation;
  message.run.repeat = 1;
  message.run.priority = static_cast<std::uint32_t>(priority == Priority::inherit ? Priority::normal : priority);
  message.run.sinks = message.run.root_count = 1;
  message.run.flags = kRootsUniform | kRootsDense | kInlineRoot;
  std::memcpy(message.carried, &record, sizeof(record));
  inbox_.write(message);
  return task;
}

bool SingleTasks::collect(SingleTask& task) {
  // Acquire: pairs with the release in finish() and fail().
  if (task.done.load(std::memory_order_acquire)) return true;
  return take_up(task.slot, task.generation);
}

/// Collects the task of this generation if the device has ended it. True if it is done.
bool SingleTasks::take_up(std::uint32_t slot, std::uint32_t generation) {
  // Acquire: pairs with the release store in end_run() (runtime/ready/completion.hpp). The result is visible after it.
  if (P::system(dev_.completions[slot].word).load(Order::acquire) >> 32 != generation) return false;
  Place& place = places_[slot - dev_.run_slots];
  std::shared_ptr<SingleTask> task;
  std::uint32_t counted = 0;  // the slot goes back where it came from
  {
    const Locked here(place.lock);
    if (place.generation != generation || !place.task) return true;  // another thread has collected it
    // Relaxed: `done` is only stored under the lock, which is held.
    if (!place.task->done.load(std::memory_order_relaxed)) finish(*place.task);
    if (place.pins) return true;  // sweep() frees the slot later
    task = std::move(place.task);
    counted = place.stripe;
    place.taken.store(0, std::memory_order_relaxed);  // relaxed: see Place
  }
  {
    Stripe& stripe = stripes_[counted];
    const Locked here(stripe.lock);
    stripe.free.push_back(slot);
  }
  // Sequentially consistent: see in_flight(). After the slot is free again: a count of 0 means that all are.
  stripes_[counted].in_flight.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

/// Copies what the device left in the completion slot. The caller holds the lock of the place.
void SingleTasks::finish(SingleTask& task) const {
  CompletionSlot& slot = dev_.completions[task.slot];
  // Relaxed: pairs with the store in end_run(), which take_up() has acquired.
  task.code = static_cast<std::uint32_t>(P::system(slot.word).load(Order::relaxed));
  task.result = std::to_array(slot.result);
  if (task.code == static_cast<std::uint32_t>(Status::task_threw)) task.cause = take_what_body_threw(dev_, task.slot, 0);
  // Release: pairs with the acquire in collect().
  task.done.store(true, std::memory_order_release);
}

bool SingleTasks::pin(const SingleTask& task) {
  Place& place = places_[task.slot - dev_.run_slots];
  const Locked here(place.lock);
  if (place.task.get() != &task) return false;
  ++place.pins;
  return true;
}

void SingleTasks::unpin(const SingleTask& task) {
  Place& place = places_[task.slot - dev_.run_slots];
  const Locked here(place.lock);
  --place.pins;
}

void SingleTasks::sweep() {
  for (std::uint32_t i = 0; i < places_.size(); ++i)
    // Relaxed: pairs with the stores in try_submit() and take_up(), see Place.
    if (const std::uint32_t generation = places_[i].taken.load(std::memory_order_relaxed))
      take_up(dev_.run_slots + i, generation);
}

std::uint32_t SingleTasks::generation_in(std::uint32_t slot) {
  Place& place = places_[slot - dev_.run_slots];
  const Locked here(place.lock);
  return place.task ? place.generation : 0;
}

std::string SingleTasks::name_in(std::uint32_t slot) {
  Place& place = places_[slot - dev_.run_slots];
  const Locked here(place.lock);
  return place.task ? single_task_text(place.task->type) : "a single task";
}

bool SingleTasks::fail(std::uint32_t slot, Status status, const std::string& cause) {
  Place& place = places_[slot - dev_.run_slots];
  const Locked here(place.lock);
  // Relaxed: as in take_up().
  if (!place.task || place.task->done.load(std::memory_order_relaxed)) return false;
  place.task->code = static_cast<std::uint32_t>(status);
  place.task->cause = cause;
  place.task->done.store(true, std::memory_order_release);  // pairs with the acquire in collect()
  return true;
}

void SingleTasks::fail_all(Status status, const std::string& cause, bool forget) {
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    fail(dev_.run_slots + i, status, cause);
    if (!forget) continue;
    const Locked here(places_[i].lock);
    if (!places_[i].task) continue;
    places_[i].task.reset();
    places_[i].taken.store(0, std::memory_order_relaxed);  // relaxed: see Place
    // Sequentially consistent: pairs with the loads by in_flight(), as in take_up().
    stripes_[places_[i].stripe].in_flight.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace flywheel::detail
