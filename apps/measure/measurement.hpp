// What the program measures: named rows, taken in turn so that a row and its limit see the same card.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "apps/measure/stats.hpp"

namespace measure {

/// How much work a round may do.
struct Effort {
  bool quick = false;

  /// Scales a count of samples down for --quick; never under three.
  int samples(int full) const { return quick ? std::max(full / 10, 3) : full; }
};

/// One row to measure. `round` takes one round of samples in `unit` and leaves the GPU as it found it:
/// nothing resident, nothing allocated. The next row's kernels need every SM, and cudaMalloc waits for
/// running kernels.
struct Measurement {
  std::string name = {};   // limit.hop
  std::string unit = {};   // us, ms, share, efficiency, M/s, GB/s or TFLOP/s
  std::string peer = {};   // name of the row that does the same job another way; may be empty
  std::string limit = {};  // name of the row that bounds this one; may be empty
  std::function<Samples()> round = {};
  bool needs_gpu = true;
  int max_rounds = std::numeric_limits<int>::max();  // a soak is too long to repeat
};

/// What the rounds of one measurement came to. With `error` set the other members mean nothing.
struct Outcome {
  double p50 = 0;  // median of the rounds' medians, so that one disturbed round does not move it
  double p99 = 0;  // tail of all samples of all rounds, so that a disturbed round does show
  int rounds = 0;
  std::string error = {};
};

/// The measurements whose names match the shell pattern `glob`, with the peers and limits they are compared
/// with, in the order of `all`; those that need a GPU only if `have_gpu`. Errors: std::invalid_argument if
/// there is a GPU and nothing matches; the message lists the names.
std::vector<Measurement> select_rows(const std::vector<Measurement>& all, const std::string& glob, bool have_gpu);

/// Told before each round: name of the row, and the round, counted from 1.
using OnRound = std::function<void(const std::string& name, int round)>;

/// Runs the measurements in turn, A B C A B C ..., `rounds` times, so that drifting clocks and temperature
/// touch all of them alike. A measurement that throws keeps the message in its outcome and the others go on.
std::vector<Outcome> interleave(const std::vector<Measurement>& measurements, int rounds, const OnRound& on_round = {});

}  // namespace measure
