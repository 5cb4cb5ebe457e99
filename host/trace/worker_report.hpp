// The report of a run that is not compiled, see worker_report.cpp. Trace::report() calls it.
#pragma once

#include <string>

#include "trace.hpp"

namespace flywheel::detail {

/// The report of a dynamic or phased run, or of a batch, whose trace has spans.
std::string report_by_worker(const Trace& trace);

}  // namespace flywheel::detail
