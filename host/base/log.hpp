// Logging, behind plain strings so that spdlog stays in one source file.
#pragma once

#include <string>

namespace flywheel::log {

/// FLYWHEEL_LOG overrides `level`. Throws UsageError for a level that there is not.
void set_level(const std::string& level);
void debug(const std::string& message);
void info(const std::string& message);
void warn(const std::string& message);
void error(const std::string& message);

}  // namespace flywheel::log
