// How a report looks on a terminal.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "apps/measure/results.hpp"

namespace measure {
namespace {

constexpr std::size_t kName = 0, kUnit = 3, kPeer = 4;

// Four digits or so, never an exponent.
std::string number(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string number(const std::optional<double>& value) { return value ? number(*value) : "-"; }

std::string ratio(double value, const std::optional<double>& base) {
  return base && *base != 0 ? number(value / *base) + "x" : "-";
}

std::vector<std::string> line_of(const Row& row) {
  const std::string peer = row.peer.empty() ? "-" : row.peer + " " + number(row.peer_value);
  return {row.name,          number(row.p50),          number(row.p99), row.unit, peer, ratio(row.p50, row.peer_value),
          number(row.limit), ratio(row.p50, row.limit)};
}

// Words to the left, numbers to the right.
std::string pad(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return left ? text + space : space + text;
}

}  // namespace

void print_aligned(std::ostream& out, const TextTable& lines, const std::vector<std::size_t>& words) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  const auto is_words = [&](std::size_t column) { return std::find(words.begin(), words.end(), column) != words.end(); };
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) out << (c ? "  " : "") << pad(line[c], widths[c], is_words(c));
    out << '\n';
  }
}

void Report::print(std::ostream& out) const {
  TextTable lines{{"row", "p50", "p99", "unit", "peer", "to peer", "limit", "to limit"}};
  for (const Row& row : rows_) lines.push_back(line_of(row));
  print_aligned(out, lines, {kName, kUnit, kPeer});
}

}  // namespace measure
