#include "host/core.hpp"

#include <unistd.h>

#include <exception>

#include "host/log.hpp"

namespace flywheel {

namespace {
void take_apart(Core* core) noexcept {
  if (!core->is_ours()) return;
  if (!NoFarewells::here()) {
    delete core;
    return;
  }
  try {
    std::thread([core] { delete core; }).detach();
  } catch (const std::exception& error) {
    log::error(std::string("a runtime's memory stays taken until the process ends: ") + error.what());
  }
}
}  // namespace

int Core::this_process() { return getpid(); }

std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(entry, options, std::move(engine)), take_apart};
}

}  // namespace flywheel
