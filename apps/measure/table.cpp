// How a report looks on a terminal.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "apps/measure/results.hpp"

namespace measure {
namespace {

using Line = std::array<std::string, 8>;
constexpr Line::size_type kFirstNumber = 1, kUnit = 3, kPeer = 4;

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

Line line_of(const Row& row) {
  const std::string peer = row.peer.empty() ? "-" : row.peer + " " + number(row.peer_value);
  return {row.name,          number(row.p50),          number(row.p99), row.unit, peer, ratio(row.p50, row.peer_value),
          number(row.limit), ratio(row.p50, row.limit)};
}

// Words to the left, numbers to the right.
std::string pad(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return left ? text + space : space + text;
}

bool is_words(std::size_t column) { return column < kFirstNumber || column == kUnit || column == kPeer; }

}  // namespace

void Report::print(std::ostream& out) const {
  std::vector<Line> lines{{"row", "p50", "p99", "unit", "peer", "to peer", "limit", "to limit"}};
  for (const Row& row : rows_) lines.push_back(line_of(row));
  std::array<std::size_t, std::tuple_size_v<Line>> widths{};
  for (const Line& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  for (const Line& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) out << (c ? "  " : "") << pad(line[c], widths[c], is_words(c));
    out << '\n';
  }
}

}  // namespace measure
