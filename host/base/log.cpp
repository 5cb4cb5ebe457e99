#include "log.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "error.hpp"

namespace flywheel::detail::log {

namespace {
spdlog::logger& logger() {
  // The logger is never destroyed, because a runtime may log while static objects are destroyed. The handlers of fork()
  // hold spdlog's console mutex across the fork, so that it is not left locked in the child.
  static auto* one = new std::shared_ptr<spdlog::logger>(
      std::make_shared<spdlog::logger>("flywheel", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));
  using Console = spdlog::details::console_mutex;
  [[maybe_unused]] static const int registered =
      pthread_atfork([] { Console::mutex().lock(); }, [] { Console::mutex().unlock(); }, [] { Console::mutex().unlock(); });
  return **one;
}

constexpr const char* kLevels[] = {"trace", "debug", "info", "warn", "error", "off"};

/// spdlog takes an unknown name as "off", so unknown names throw UsageError here.
spdlog::level::level_enum level_of(const char* what, const std::string& name) {
  if (std::ranges::find(kLevels, name) != std::end(kLevels)) return spdlog::level::from_str(name);
  throw UsageError(std::string(what) + " is '" + name + "': choose trace, debug, info, warn, error or off");
}
}  // namespace

void set_level(const std::string& level) {
  const auto chosen = level_of("Options::log_level", level);
  const char* from_environment = std::getenv("FLYWHEEL_LOG");
  const bool overridden = from_environment && *from_environment;
  logger().set_level(overridden ? level_of("FLYWHEEL_LOG", from_environment) : chosen);
}
void debug(const std::string& message) { logger().debug(message); }
void info(const std::string& message) { logger().info(message); }
void warn(const std::string& message) { logger().warn(message); }
void error(const std::string& message) { logger().error(message); }

}  // namespace flywheel::detail::log
