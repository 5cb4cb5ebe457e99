// What was measured, as rows of the results file and as a table for a person.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/llama/bench/peers.hpp"
#include "apps/measure/results.hpp"
#include "apps/measure/stats.hpp"

namespace llama {

using measure::Row;
using measure::Samples;

/// Of one starting position. A sample is one round's: all of a round were taken one after the other.
struct DecodeTimes {
  std::uint32_t context = 0;
  double step_bytes = 0;                        // see step_bytes(), mean over the tokens of a run
  Samples ours;                                 // ms a token
  Samples drawn;                                // the same with temperature, top-k and top-p
  std::array<Samples, kPeerWays.size()> peers;  // the same; empty where there are none
  Samples read_rates;                           // limit.read_hbm, GB/s; empty where there is no GPU

  /// The time in which the card reads the step's bytes, ms; 0 if unknown.
  double limit_ms() const;
};

double median(const Samples& samples);

/// A row with the median and the worst of 100 samples.
Row row_of(const std::string& name, const Samples& samples, const char* unit, measure::Better better,
           const measure::Stamp& stamp);

/// decode.<model>.b<batch>.c<context>, the same with .drawn, .stream, .graph and .graph_pdl, and limit.read_hbm. Values are
/// medians of the rounds in ms a token; the limit's in GB/s.
std::vector<Row> decode_rows(const std::string& model, int batch, const std::vector<DecodeTimes>& all,
                             const measure::Stamp& stamp);

/// One line for each way: ms, GB/s, share of the limit, and how many times our time it is.
std::string decode_table(const std::string& model, int batch, const std::vector<DecodeTimes>& all);

/// Throws RequestError for a path that is no .json file's.
void check_results_path(const std::filesystem::path& file);
/// Rows of the same name in the file are replaced, others stay.
void write_rows(const std::vector<Row>& rows, const std::filesystem::path& file);

}  // namespace llama
