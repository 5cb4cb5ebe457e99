// The services of apps/serve_bench on a GPU: the runtime and its peers.
#include <string>

#include "apps/serve_bench/trial.hpp"
#include "catch.hpp"

namespace serve {
namespace {

constexpr std::uint32_t kClients = 4;

std::unique_ptr<Service> start_on_gpu(const std::string& name, const Workload& workload, std::uint32_t window) {
  return start_service(name, {.workload = workload, .on_gpu = true, .clients = kClients, .workers = 0, .window = window});
}

}  // namespace

TEST_CASE("serve_bench on a GPU: each service answers all requests of each kind, and each task runs once") {
  const auto kind = GENERATE(Kind::task, Kind::batch, Kind::graph);
  const std::string name = GENERATE("flywheel", "launch", "cuda_graph");
  const Workload workload{kind, 5};
  INFO(workload.name() << " " << name);
  const auto service = start_on_gpu(name, workload, 256);
  const Trial trial = run_trial(*service, workload, {.per_second = 20'000, .seconds = 0.3}, kClients);
  CHECK(trial.arrived() > 5000);
  CHECK(trial.high.arrived > 300);
  CHECK(trial.lost() == 0);
  CHECK(trial.wrong() == 0);
  CHECK(service->sum() == trial.sum());
}

TEST_CASE("serve_bench on a GPU: with more than a service can do nothing is lost") {
  const std::string name = GENERATE("flywheel", "launch", "cuda_graph");
  const Workload workload{Kind::task, 200};
  INFO(name);
  const auto service = start_on_gpu(name, workload, 16);  // 20 at once, so 100,000 a second at most
  const Trial trial = run_trial(*service, workload, {.per_second = 200'000, .seconds = 0.2}, kClients);
  CHECK(trial.answered_per_second() < 110'000);
  CHECK_FALSE(trial.is_sustained());
  CHECK(trial.lost() == 0);
  CHECK(trial.wrong() == 0);
  CHECK(service->sum() == trial.sum());
}

TEST_CASE("serve_bench on a GPU: a task takes as long as it says, whoever runs it") {
  const std::string name = GENERATE("flywheel", "launch", "cuda_graph");
  const Workload workload{Kind::task, 100};
  INFO(name);
  const auto service = start_on_gpu(name, workload, 16);
  const Trial trial = run_trial(*service, workload, {.per_second = 1000, .seconds = 0.5}, kClients);
  const double p50_us = trial.normal.latency.percentile_ns(50) / 1000;
  CHECK(p50_us >= 99);
  CHECK(p50_us < 200);
}

TEST_CASE("serve_bench on a GPU: a service that nobody knows is refused") {
  CHECK_THROWS_AS(start_on_gpu("other", {}, 16), std::invalid_argument);
}

}  // namespace serve
