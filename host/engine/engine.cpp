#include "engine.hpp"

#include <cstdlib>

#include "../base/error.hpp"
#include "../base/log.hpp"

namespace flywheel::detail {

namespace {
Target wanted_target(const Options& options) {
  const char* text = std::getenv("FLYWHEEL_TARGET");
  if (options.target != Target::automatic || !text || !*text) return options.target;
  if (std::string(text) == "gpu") return Target::gpu;
  if (std::string(text) == "cpu") return Target::cpu;
  throw UsageError("FLYWHEEL_TARGET is '" + std::string(text) + "': set it to gpu or cpu, or unset it");
}
}  // namespace

std::unique_ptr<Engine> make_engine(const KernelEntry& entry, const Options& options) {
  const Target target = wanted_target(options);
  if (target == Target::cpu) return make_cpu_engine(entry, options);
  std::string why;
  if (auto engine = make_gpu_engine(entry, options, why)) return engine;
  if (target == Target::gpu)
    throw DeviceError("cannot run on a GPU: " + why + ". " +
                      (options.target == Target::gpu ? "Use Target::automatic" : "Unset FLYWHEEL_TARGET") +
                      " to fall back to CPU workers.");
  log::info("running on CPU workers: " + why);
  return make_cpu_engine(entry, options);
}

}  // namespace flywheel::detail
