// What the threads share: runtimes, buffers, executables and runs in places that each of them may take from and put into,
// and for each of these what the model knows of it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abuse/dice.hpp"
#include "abuse/engine.hpp"
#include "abuse/journal.hpp"
#include "abuse/tasks.hpp"

namespace flywheel::abuse {

/// A ticket that all endless tasks reach.
inline constexpr std::uint64_t kForEver = std::uint64_t{1} << 62;

/// What may become of a runtime. Outlives it.
struct Fate {
  explicit Fate(std::uint32_t n);
  void grant_mercy() { mercy->fetch_add(1, std::memory_order_relaxed); }

  const std::uint32_t number;
  Options options;
  bool tight = false;                         // time limits so short that healthy runs may exceed them
  std::atomic<bool> ends{false};              // shutdown() was called, or is about to be
  std::atomic<bool> failing{false};           // its engine was told to fail
  std::shared_ptr<testing::Frailty> frailty;  // null: an engine like everybody's
  std::mutex stream;                          // guards what `frailty` notes of streams
  std::atomic<std::uint64_t>* const mercy;    // never freed
};
/// The runtime may have to go without a worker that does not end: then its memory stays taken.
void allow_to_leave_memory(const Fate& fate);
bool may_leave_memory(std::uint32_t runtime);
/// Options of that runtime, for a finding.
std::string describe_fate(std::uint32_t runtime);
/// Keeps what describe_fate() tells.
void note_options(const Fate& fate);
/// To all runtimes, for ever.
void grant_mercy_to_all();

/// A runtime, and words for its tasks.
struct Room {
  Room(std::shared_ptr<Fate> what, Runtime&& started);
  ~Room();
  const std::shared_ptr<Fate> fate;
  Buffer<std::uint32_t> words;  // goes after the runtime
  Runtime runtime;
};

struct BufferCase {
  std::shared_ptr<Fate> fate;
  std::mutex mutex;
  Buffer<std::uint32_t> buffer;
  std::vector<std::uint32_t> shadow;  // what must be in it
};

enum class Kind { dynamic, phased, grid, compiled, gang, operands, buffers, single, batch, mixed };
inline constexpr const char* kKindNames[] = {"dynamic",  "phased",  "grid",   "compiled", "gang",
                                             "operands", "buffers", "single", "batch",    "mixed"};

/// What a graph does.
struct Spec {
  Kind kind = Kind::dynamic;
  std::uint32_t tasks = 0;
  Special special = Special::none;
  std::uint32_t at = 0;  // the task that is special
  std::uint32_t argument = 0;
  Param<Call*> call{};
  Param<std::uint64_t> in{};
  std::vector<TaskRef<std::uint64_t>> refs;
  bool is_compiled() const { return kind == Kind::compiled || kind == Kind::gang || kind == Kind::operands; }
  bool is_dynamic() const { return kind == Kind::dynamic || kind == Kind::buffers || kind >= Kind::single; }
};

struct LoadedCase {
  std::shared_ptr<Fate> fate;
  std::weak_ptr<Room> room;
  std::shared_ptr<const Spec> spec;
  Executable executable;
};

struct RunCase {
  std::shared_ptr<Fate> fate;
  std::shared_ptr<const Spec> spec;
  Run run;
  Call* call = nullptr;
  std::uint64_t in = 0;
  std::uint32_t passes = 1;
  bool traced = false;
  bool follows = false;                  // other runs
  std::atomic<bool> cancelled{false};    // cancel() was called, or is about to be
  std::atomic<std::uint32_t> values{0};  // read from its stream
};

/// Tasks without a graph. Its handles are not for several threads at once.
struct WorkCase {
  RunCase outcome;  // without a run
  std::mutex mutex;
  Future<std::uint64_t> future;
  Batch<std::uint64_t> batch;
  MixedBatch mixed;
  std::vector<std::pair<std::uint32_t, BatchRef<std::uint64_t>>> refs;  // of the mixed batch: those with a result
};

/// A queue, and the tags of the runs that have not come out of it.
struct QueueCase {
  CompletionQueue queue;
  std::mutex mutex;
  std::set<std::uint64_t> tags;
  /// A run came out.
  void check(const Finished& finished);
};

/// Places for things of one kind.
template <class T, std::uint32_t count>
class Places {
 public:
  std::shared_ptr<T> get(std::uint32_t at) {
    std::scoped_lock lock(places_[at % count].mutex);
    return places_[at % count].thing;
  }
  /// Gives back what was there.
  std::shared_ptr<T> put(std::uint32_t at, std::shared_ptr<T> thing) {
    std::scoped_lock lock(places_[at % count].mutex);
    places_[at % count].thing.swap(thing);
    return thing;
  }
  void lock_all() {
    for (Place& place : places_) place.mutex.lock();
  }
  void unlock_all() {
    for (Place& place : places_) place.mutex.unlock();
  }
  void clear() {
    for (std::uint32_t at = 0; at < count; ++at) put(at, nullptr);
  }

 private:
  struct Place {
    std::mutex mutex;
    std::shared_ptr<T> thing;
  };
  std::array<Place, count> places_;
};

/// 64 locks at most are held at once in a process under ThreadSanitizer, see TaskSlot::lock_all().
inline constexpr std::uint32_t kRooms = 4, kBuffers = 12, kLoaded = 14, kRuns = 20, kQueues = 3, kWorks = 8;

struct TaskSlot {
  Places<Room, kRooms> rooms;
  Places<BufferCase, kBuffers> buffers;
  Places<LoadedCase, kLoaded> loaded;
  Places<RunCase, kRuns> runs;
  Places<QueueCase, kQueues> queues;
  Places<WorkCase, kWorks> works;

  void lock_all();
  void unlock_all();
  void clear();
};

struct Settings {
  std::uint64_t seed = 1;
  std::uint64_t operations = 0;
  double seconds = 0;
  std::uint32_t threads = 4;
  bool forks = true;
  bool shows_log = false;
};

/// One thread that draws operations.
struct Actor {
  TaskSlot& stage;
  const Settings& settings;
  Journal& journal;
  Dice dice;
  std::uint64_t number = 0;  // of the operation
  std::uint32_t depth = 0;   // of operations within operations
};

void count(const char* what, std::int64_t ns = 0);
void print_counts();
Call* new_call();

}  // namespace flywheel::abuse
