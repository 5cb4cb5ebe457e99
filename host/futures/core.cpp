#include "core.hpp"

#include <exception>

#include "../base/deferred_release.hpp"
#include "../base/error.hpp"
#include "../base/log.hpp"

namespace flywheel::detail {

namespace {
/// The deleter of a core.
void take_apart(Core* core) noexcept {
  if (!core->is_ours()) return;
  if (!DeferredRelease::here()) {
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

void Core::require_ours() const {
  if (!is_ours())
    throw UsageError(
        "a child of fork() has neither the threads nor the device of its parent's runtime: start a runtime in the "
        "child");
}

std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(entry, options, std::move(engine)), take_apart};
}

}  // namespace flywheel::detail
