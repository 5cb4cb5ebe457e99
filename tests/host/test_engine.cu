// Which engine a runtime gets. Compiled by nvcc where there is one, and run without any GPU to be seen, by
// processes of its own: the driver looks at the environment once.
#include "host/engine/engine.hpp"
#include "support/internals.hpp"

#include "support/child.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

ChildResult start_with(const Environment& environment) {
  return run_child("child: start on the automatic target", std::chrono::seconds(60), environment);
}

}  // namespace

TEST_CASE("child: start on the automatic target", "[.child]") {
  Options options;
  options.workers = 2;
  Bench bench(options);
  bench.runtime.submit(bench.counter(0)).wait();
  std::printf("%u task on %s\n", bench.get(0), bench.runtime.device().c_str());
}

TEST_CASE("child: start on Target::gpu", "[.child]") {
  Options options;
  options.target = Target::gpu;
  Bench bench(options);
}

TEST_CASE("without a GPU the automatic target falls back to CPU workers and says why") {
  const ChildResult result = start_with({{"CUDA_VISIBLE_DEVICES", ""}, {"FLYWHEEL_TARGET", ""}, {"FLYWHEEL_LOG", "info"}});
  check_child(result);
  check_says(result.output, {"running on CPU workers: ", "1 task on CPU, 2 workers"});
  const bool knows = result.output.find("no NVIDIA driver") != std::string::npos ||
                     result.output.find("the driver finds no GPU") != std::string::npos ||
                     result.output.find("built without CUDA") != std::string::npos ||
                     result.output.find("compiled without nvcc") != std::string::npos;
  INFO(result.output);
  CHECK(knows);
}

TEST_CASE("without a GPU Target::gpu is refused, and the message says what to change, in the program or in the environment") {
  const ChildResult result = start_with({{"CUDA_VISIBLE_DEVICES", ""}, {"FLYWHEEL_TARGET", "gpu"}});
  CHECK_FALSE(result.timed_out);
  CHECK(result.status != 0);
  check_says(result.output, {"cannot run on a GPU: ", "Unset FLYWHEEL_TARGET to fall back"});
  const ChildResult chosen = run_child("child: start on Target::gpu", std::chrono::seconds(60), {{"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(chosen.status != 0);
  check_says(chosen.output, {"cannot run on a GPU: ", "Use Target::automatic to fall back"});
}

TEST_CASE("FLYWHEEL_TARGET chooses for the automatic target, and a typo is told") {
  const ChildResult cpu = start_with({{"FLYWHEEL_TARGET", "cpu"}});
  check_child(cpu);
  check_says(cpu.output, {"1 task on CPU, 2 workers"});
  const ChildResult typo = start_with({{"FLYWHEEL_TARGET", "tpu"}});
  CHECK(typo.status != 0);
  check_says(typo.output, {"FLYWHEEL_TARGET is 'tpu'", "gpu or cpu"});
}

TEST_CASE("the CPU engine's memory is zeroed and aligned, and it knows a null pointer") {
  const auto engine = make_cpu_engine(kernel_entry<Count>(), on_cpu(3));
  CHECK(engine->workers() == 3);
  CHECK_FALSE(engine->is_gpu());
  CHECK(engine->name() == "CPU, 3 workers");
  for (const std::size_t bytes : {0, 1, 255, 4096}) {
    auto* memory = static_cast<unsigned char*>(engine->allocate_device(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
    for (std::size_t i = 0; i < bytes; ++i) REQUIRE(memory[i] == 0);
    CHECK(engine->check_pointer(memory).empty());
    engine->free_device(memory);
  }
  CHECK(engine->check_pointer(nullptr) == "it is null");
  std::string why;
  CHECK(engine->state(why) == EngineState::parked);
}
