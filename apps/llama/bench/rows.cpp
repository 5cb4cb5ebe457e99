#include "apps/llama/bench/rows.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/llama/decode/request.hpp"

namespace llama {
namespace {

using measure::Better;
using measure::percentile;
using measure::Stamp;

constexpr const char* kStrongestPeer = "graph with programmatic dependent launch";

/// More digits would be noise in the file.
double five_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

std::string name_of(const std::string& model, int batch, const DecodeTimes& times) {
  return "decode." + model + ".b" + std::to_string(batch) + ".c" + std::to_string(times.context);
}

const Samples& of(const DecodeTimes& times, PeerWay way) { return times.peers[static_cast<std::size_t>(way)]; }

std::string table_line(const std::string& name, const Samples& samples, const DecodeTimes& times) {
  const double ms = median(samples), limit = times.limit_ms();
  char text[200], share[16] = "-";
  if (limit > 0) std::snprintf(share, sizeof share, "%.1f%%", 100 * limit / ms);
  std::snprintf(text, sizeof text, "%-44s %9.4f %9.4f %8.0f %8s %7.2fx\n", name.c_str(), ms, percentile(samples, 1),
                times.step_bytes / ms / 1e6, share, ms / median(times.ours));
  return text;
}

std::string limit_line(const DecodeTimes& times) {
  char text[200];
  std::snprintf(text, sizeof text, "%-44s %9.4f %9s %8.0f %8s %7.2fx\n", "  limit.read_hbm", times.limit_ms(), "",
                median(times.read_rates), "100.0%", times.limit_ms() / median(times.ours));
  return text;
}

}  // namespace

double median(const Samples& samples) { return percentile(samples, 50); }

Row row_of(const std::string& name, const Samples& samples, const char* unit, Better better, const Stamp& stamp) {
  Row row;
  row.name = name;
  row.unit = unit;
  row.value = row.p50 = five_digits(median(samples));
  row.p99 = five_digits(measure::tail(samples, 99, better));
  row.gpu = stamp.gpu;
  row.driver = stamp.driver;
  row.date = stamp.date;
  row.commit = stamp.commit;
  return row;
}

double DecodeTimes::limit_ms() const { return read_rates.empty() ? 0 : step_bytes / median(read_rates) / 1e6; }

std::vector<Row> decode_rows(const std::string& model, int batch, const std::vector<DecodeTimes>& all, const Stamp& stamp) {
  std::vector<Row> rows;
  Samples rates;
  for (const DecodeTimes& times : all) {
    const std::string name = name_of(model, batch, times);
    const auto add = [&](const std::string& suffix, const Samples& samples) {
      rows.push_back(row_of(name + suffix, samples, "ms", Better::lower, stamp));
      if (times.limit_ms() > 0) rows.back().limit = five_digits(times.limit_ms());
    };
    add("", times.ours);
    if (const Samples& strongest = of(times, PeerWay::graph_pdl); !strongest.empty()) {
      rows.back().peer = kStrongestPeer;
      rows.back().peer_value = five_digits(median(strongest));
    }
    if (!times.drawn.empty()) add(".drawn", times.drawn);
    for (const PeerWay way : kPeerWays)
      if (!of(times, way).empty()) add(std::string(".") + describe(way), of(times, way));
    rates.insert(rates.end(), times.read_rates.begin(), times.read_rates.end());
  }
  if (!rates.empty()) rows.push_back(row_of("limit.read_hbm", rates, "GB/s", Better::higher, stamp));
  return rows;
}

std::string decode_table(const std::string& model, int batch, const std::vector<DecodeTimes>& all) {
  char head[200];
  std::snprintf(head, sizeof head, "%-44s %9s %9s %8s %8s %8s\n", "row", "ms", "least", "GB/s", "limit", "to ours");
  std::string text = head;
  for (const DecodeTimes& times : all) {
    text += table_line(name_of(model, batch, times), times.ours, times);
    if (!times.drawn.empty()) text += table_line("  .drawn", times.drawn, times);
    for (const PeerWay way : kPeerWays)
      if (!of(times, way).empty()) text += table_line(std::string("  .") + describe(way), of(times, way), times);
    if (times.limit_ms() > 0) text += limit_line(times);
  }
  return text;
}

void check_results_path(const std::filesystem::path& file) {
  if (file.extension() != ".json")
    throw RequestError("--out " + file.string() + " is no .json file: name one, such as apps/llama/results/nvidia-h200.json");
}

void write_rows(const std::vector<Row>& rows, const std::filesystem::path& file) {
  check_results_path(file);
  measure::Report report;
  for (const Row& row : rows) report.add(row);
  report.write(file.has_parent_path() ? file.parent_path() : std::filesystem::path("."), file.stem().string());
}

}  // namespace llama
