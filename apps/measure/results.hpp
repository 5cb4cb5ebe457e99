// Rows of results: the table a person reads and the file that keeps them.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/measure/measurement.hpp"

namespace measure {

/// Where and when a row was measured.
struct Stamp {
  std::string gpu = {};     // "nvidia-h200", or "cpu"
  std::string driver = {};  // "580.95.05"; empty where there is no GPU
  std::string date = {};    // "2026-11-20"
  std::string commit = {};
};

/// One line of the results file. Times in us or ms, rates in M/s, bandwidth in GB/s, shares of 1; `value` is the p50.
struct Row {
  std::string name = {};
  double value = 0;
  std::string unit = {};
  double p50 = 0;
  double p99 = 0;                         // the slow tail: for a rate, what 99 samples in 100 reach
  std::string peer = {};                  // name of the peer's row; empty if it has none
  std::optional<double> peer_value = {};  // the peer's p50 in the same run
  std::optional<double> limit = {};       // the p50 of the row that bounds this one, in the same run
  std::string gpu = {};
  std::string driver = {};
  std::string date = {};
  std::string commit = {};
  /// Further numbers of this row, by name, in their order; the file has them as "numbers", and nothing if there are none.
  std::vector<std::pair<std::string, double>> numbers = {};

  bool operator==(const Row&) const = default;
};

/// "NVIDIA H200" -> "nvidia-h200": lower case, every run of other characters one dash, none at the ends.
/// An empty name gives "cpu".
std::string slug(std::string_view device_name);

/// The value with five significant digits: more would only be noise in the file.
double five_digits(double value);

/// Today in UTC as "2026-11-20".
std::string today();

/// Words of a table, a line each; all lines have as many.
using TextTable = std::vector<std::vector<std::string>>;
/// Prints it in aligned columns: numbers to the right, except that the columns in `words` go to the left.
void print_aligned(std::ostream& out, const TextTable& lines, const std::vector<std::size_t>& words);

/// The row as one JSON object on one line, keys in the order of `Row`, null for what is missing.
/// Errors: std::invalid_argument if a number is not finite, naming the row.
std::string to_json_line(const Row& row);

/// The reverse of to_json_line. Errors: std::runtime_error naming what is wrong with the line.
Row from_json_line(std::string_view line);

/// Rows of a results file, one a line; lines may be empty. `file` is for messages.
/// Errors: std::runtime_error naming the file, the line and the remedy.
std::vector<Row> read_rows(std::istream& in, const std::filesystem::path& file);

/// Rows of the measurements that succeeded, with peers and limits looked up by name among them. Numbers keep
/// five significant digits.
std::vector<Row> make_rows(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes,
                           const Stamp& stamp);

/// Rows that are in the file; none if it is not there. Makes its folder, and those that is in, as far as they are missing.
/// Errors: std::runtime_error naming the remedy, also where nothing may be written. To be asked before measuring for long.
std::vector<Row> prepare_results(const std::filesystem::path& file);

/// The folder for the results of apps/<program>: `out` if the person has named one, none for a quick look, else the one in the
/// repository. To be asked before measuring, so that a wrong path costs no measurement. Errors: std::runtime_error naming the
/// remedy.
std::string results_folder(const std::string& program, const std::string& out, bool quick);

/// Collects rows, prints them and keeps them in a folder.
class Report {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }
  const std::vector<Row>& rows() const { return rows_; }

  /// An aligned table: name, p50, p99, unit, peer, ratio to the peer, limit, ratio to the limit.
  void print(std::ostream& out) const;

  /// Writes <folder>/<gpu>.json, one object a line, and gives its path. A row already in the file is
  /// replaced, the others stay, so a run of few rows loses nothing. Errors: std::runtime_error naming the
  /// file and the remedy.
  std::filesystem::path write(const std::filesystem::path& folder, const std::string& gpu) const;

 private:
  std::vector<Row> rows_;
};

}  // namespace measure
