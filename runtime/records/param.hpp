// Param: the handle of a run parameter. Graph::param<T>() makes it, set() gives it a value, bodies read block.param().
#pragma once

#include <cstdint>

namespace flywheel {

/// A handle of a run parameter: a value that may change from one run of an executable to the next. Made by
/// Graph::param<T>().
template <class T>
struct Param {
  std::uint32_t offset;  // bytes into the run's parameters
  std::uint32_t graph;   // the graph that it belongs to: the lower half of its id
};

}  // namespace flywheel
