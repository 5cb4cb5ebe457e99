#include "thrown_texts.hpp"

#include <pthread.h>

#include <map>
#include <mutex>
#include <tuple>

#include "../../runtime/cpu/thrown.hpp"

namespace flywheel::detail {

namespace {
/// The texts by device state, run slot and task.
class ThrownTexts {
 public:
  /// Never destroyed, because bodies may throw while static objects are destroyed. The handlers of fork() hold the
  /// mutex across the fork, so that it is not left locked in the child.
  static ThrownTexts& all() {
    static auto& texts = *new ThrownTexts;
    [[maybe_unused]] static const int registered =
        pthread_atfork([] { texts.mutex_.lock(); }, [] { texts.mutex_.unlock(); }, [] { texts.mutex_.unlock(); });
    return texts;
  }
  void keep(const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text) {
    std::scoped_lock lock(mutex_);
    texts_[{dev.control, slot, task}] = text;
  }
  /// Takes the text of one task, and removes the texts of all tasks of its run.
  std::string take(const DeviceState& dev, std::uint32_t slot, std::uint32_t task) {
    std::scoped_lock lock(mutex_);
    const auto found = texts_.find({dev.control, slot, task});
    std::string text = found == texts_.end() ? "" : found->second;
    texts_.erase(texts_.lower_bound({dev.control, slot, 0}), texts_.upper_bound({dev.control, slot, ~0u}));
    return text;
  }
  void forget(const DeviceState& dev) {
    std::scoped_lock lock(mutex_);
    texts_.erase(texts_.lower_bound({dev.control, 0, 0}), texts_.upper_bound({dev.control, ~0u, ~0u}));
  }
  std::size_t size() {
    std::scoped_lock lock(mutex_);
    return texts_.size();
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const void*, std::uint32_t, std::uint32_t>, std::string> texts_;
};

}  // namespace

void keep_what_bodies_throw() {
  const KeepThrown keep = [](const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text) {
    ThrownTexts::all().keep(dev, slot, task, text);
  };
  // Release: pairs with the acquire in runtime/cpu/thrown.hpp, note_thrown(): the function that the pointer names is
  // ready to be called.
  CpuPlatform::system(keep_thrown).store(reinterpret_cast<std::uint64_t>(keep), Order::release);
}

std::string take_what_body_threw(const DeviceState& dev, std::uint32_t slot, std::uint32_t task) {
  return ThrownTexts::all().take(dev, slot, task);
}
std::size_t count_what_bodies_threw() { return ThrownTexts::all().size(); }
void forget_what_bodies_threw(const DeviceState& dev) { ThrownTexts::all().forget(dev); }

}  // namespace flywheel::detail
