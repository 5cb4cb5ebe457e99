// What a program took from the C library's heap during a run and can no longer give back.
#pragma once

#include <cstddef>

namespace flywheel::simulate::leaks {

/// Forgets all blocks.
void begin_run();
/// After the run, whose threads have all ended: a finding if a block is left that neither a static object nor another block
/// points to. What a program makes once and keeps, like its log, is reached from a static object.
void check();

/// While one of these lives, blocks are the simulator's own.
class OurOwn {
 public:
  OurOwn() { ++depth; }
  ~OurOwn() { --depth; }
  OurOwn(const OurOwn&) = delete;
  OurOwn& operator=(const OurOwn&) = delete;
  static int depth;
};

}  // namespace flywheel::simulate::leaks
