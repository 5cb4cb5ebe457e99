#include "thrown_texts.hpp"

#include <pthread.h>

#include <map>
#include <mutex>
#include <tuple>

#include "../../runtime/cpu/thrown.hpp"

namespace flywheel {

namespace {
/// What exceptions of CPU workers' bodies said, until their runs are collected.
class ThrownTexts {
 public:
  /// Never destroyed: bodies may throw while static objects go away. Not locked in a child of fork().
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
  /// Of a task of the run in a slot. Forgets those of all its tasks.
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
  const detail::KeepThrown keep = [](const DeviceState& dev, std::uint32_t slot, std::uint32_t task, const char* text) {
    ThrownTexts::all().keep(dev, slot, task, text);
  };
  // Release: pairs with the acquire in runtime/cpu/thrown, note_thrown().
  CpuPlatform::system(detail::keep_thrown).store(reinterpret_cast<std::uint64_t>(keep), Order::release);
}

std::string take_what_body_threw(const DeviceState& dev, std::uint32_t slot, std::uint32_t task) {
  return ThrownTexts::all().take(dev, slot, task);
}
std::size_t count_what_bodies_threw() { return ThrownTexts::all().size(); }
void forget_what_bodies_threw(const DeviceState& dev) { ThrownTexts::all().forget(dev); }

}  // namespace flywheel
