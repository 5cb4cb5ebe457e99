// What the tests of apps/measure, and of the programs that measure, share.
#pragma once

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>

#include "apps/measure/measurement.hpp"
#include "apps/measure/results.hpp"

namespace measure {

/// The message of the exception that `action` throws; empty if it throws none.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

inline bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

inline Measurement constant(const std::string& name, double value) {
  return {.name = name, .unit = "us", .round = [value] { return Samples{value}; }};
}

/// The rows of a results file, by name.
inline std::map<std::string, Row> rows_of(const std::filesystem::path& file) {
  std::map<std::string, Row> rows;
  std::ifstream in(file);
  for (Row& row : read_rows(in, file)) rows[row.name] = std::move(row);
  return rows;
}

/// One of a row's numbers. Throws std::runtime_error if it has none of that name.
inline double number_of(const Row& row, const std::string& name) {
  for (const auto& [key, value] : row.numbers)
    if (key == name) return value;
  throw std::runtime_error("row " + row.name + " has no number " + name);
}

/// The path of a folder for a program's results, which is not there yet and is gone afterwards.
class TempResults {
 public:
  explicit TempResults(const std::string& program)
      : path_(std::filesystem::temp_directory_path() / ("flywheel-" + program + "-" + std::to_string(getpid()))) {}
  ~TempResults() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace measure
