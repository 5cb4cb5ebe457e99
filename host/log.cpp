#include "host/log.hpp"

#include <cstdlib>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace flywheel::log {

namespace {
spdlog::logger& logger() {
  // Never destroyed: a runtime may log while static objects go away.
  static auto* one = new std::shared_ptr<spdlog::logger>(
      std::make_shared<spdlog::logger>("flywheel", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()));
  return **one;
}
}  // namespace

void set_level(const std::string& level) {
  const char* from_environment = std::getenv("FLYWHEEL_LOG");
  logger().set_level(spdlog::level::from_str(from_environment ? from_environment : level));
}
void debug(const std::string& message) { logger().debug(message); }
void info(const std::string& message) { logger().info(message); }
void warn(const std::string& message) { logger().warn(message); }
void error(const std::string& message) { logger().error(message); }

}  // namespace flywheel::log
