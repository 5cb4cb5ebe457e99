// The library's log, on the standard error stream. The functions take plain strings, so only log.cpp includes spdlog.
#pragma once

#include <string>

namespace flywheel::detail::log {

/// Sets the least level that is logged: trace, debug, info, warn, error or off. The environment variable FLYWHEEL_LOG
/// overrides `level`. Throws UsageError for any other name, in either place.
void set_level(const std::string& level);
void debug(const std::string& message);
void info(const std::string& message);
void warn(const std::string& message);
void error(const std::string& message);

}  // namespace flywheel::detail::log
