// What is measured: a service takes requests and answers them. The runtime is one service, its peers are others; clients
// (client.hpp) see this interface alone.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace serve {

using flywheel::Priority;

/// What a request is: one task; a batch of independent tasks; a small graph, a diamond of four tasks of the same length.
enum class Kind { task, batch, graph };
inline constexpr std::uint32_t kBatchTasks = 16, kGraphTasks = 4;

struct Workload {
  Kind kind = Kind::task;
  double task_us = 20;  // of each task

  std::uint32_t tasks() const { return kind == Kind::task ? 1 : kind == Kind::batch ? kBatchTasks : kGraphTasks; }
  /// "task.20us"
  std::string name() const;
};

/// What task `i` of a request works on, and the value that its body computes from it and adds to a sum.
FLYWHEEL_TASK inline std::uint64_t word_of(std::uint64_t seed, std::uint32_t i) { return seed + i * 0x9e3779b97f4a7c15ull; }
FLYWHEEL_TASK inline std::uint64_t stir(std::uint64_t x) {  // the finaliser of splitmix64 (Steele et al., 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
/// The sum of the values of all tasks of a request.
std::uint64_t sum_of(const Workload& workload, std::uint64_t seed);
/// What a request is to be answered with: the sum of all values, or the value of a graph's last task.
std::uint64_t answer_of(const Workload& workload, std::uint64_t seed);

struct Request {
  std::uint64_t seed;
  std::int64_t arrival_ns;  // the intended one
  Priority priority;
};
struct Answer {
  Request request;
  std::uint64_t value;
};

/// One client's way to a service. Used by one thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  /// Begins a request. False if the service has no room for it: the client keeps it and asks again. Does not wait.
  virtual bool try_begin(const Request& request) = 0;
  /// Appends the answers that have come. Does not wait. Throws if the service has failed.
  virtual void collect(std::vector<Answer>& answers) = 0;
};

/// A running service with its sessions: it allocates nothing more while it serves.
class Service {
 public:
  virtual ~Service() = default;
  virtual const char* name() const = 0;
  virtual Session& session(std::uint32_t client) = 0;
  /// The sum of the values that all bodies have computed since the start, whoever took their results. To be asked while
  /// nothing is in flight.
  virtual std::uint64_t sum() = 0;
  /// The most tasks that run at once; 0: unknown.
  virtual std::uint32_t workers() const = 0;
};

struct ServiceOptions {
  Workload workload = {};
  bool on_gpu = false;
  std::uint32_t clients = 1;
  std::uint32_t workers = 0;   // 0: as the runtime chooses
  std::uint32_t window = 512;  // requests of normal priority in flight at once, of all clients together; a quarter more of high
};
/// The share of a window that one client has.
inline std::uint32_t share_of(std::uint32_t window, std::uint32_t clients) { return window < clients ? 1 : window / clients; }

/// The names of the services that this build and machine have: "flywheel", and with a GPU "launch" and "cuda_graph".
std::vector<std::string> service_names(bool on_gpu);
/// Starts a service. Errors: std::invalid_argument for an unknown name; what the service throws.
std::unique_ptr<Service> start_service(const std::string& name, const ServiceOptions& options);

std::unique_ptr<Service> start_flywheel(const ServiceOptions& options);
/// The peers. In a host-only build there are none.
std::vector<std::string> peer_names();
std::unique_ptr<Service> start_peer(const std::string& name, const ServiceOptions& options);

}  // namespace serve
