// The runtime: the one file whose task types make a kernel.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "apps/taskbench/early_task.hpp"
#include "apps/taskbench/point_task.hpp"
#include "apps/taskbench/runtime_system.hpp"

namespace taskbench {
namespace {

flywheel::Options options_for(bool on_gpu, std::uint32_t workers) {
  flywheel::Options options;
  options.target = on_gpu ? flywheel::Target::gpu : flywheel::Target::cpu;
  options.mode = flywheel::Mode::resident;
  options.workers = workers;
  return options;
}

class RuntimeHost final : public Host {
 public:
  RuntimeHost(bool on_gpu, std::uint32_t workers)
      : rt_(flywheel::start<PointTask, EarlyPointTask, WarpPointTask>(options_for(on_gpu, workers))) {}
  std::uint32_t workers() const override { return rt_.workers(); }
  std::string device() const override { return rt_.device(); }
  std::unique_ptr<System> make(const std::string& name, const Problem& problem) override {
    return make_runtime_system(rt_, name, problem);
  }
  std::shared_ptr<void> pause() override { return std::make_shared<flywheel::Pause>(rt_); }

 private:
  flywheel::Runtime rt_;
};

}  // namespace

std::unique_ptr<Host> start_host(bool on_gpu, std::uint32_t workers) { return std::make_unique<RuntimeHost>(on_gpu, workers); }

}  // namespace taskbench
