#include "apps/measure/results.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace measure {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<double> optional_number(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

std::string optional_text(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

void require_finite(const Row& row) {
  std::vector<double> all{row.value, row.p50, row.p99, row.peer_value.value_or(0), row.limit.value_or(0)};
  for (const auto& named : row.numbers) all.push_back(named.second);
  if (std::all_of(all.begin(), all.end(), [](double number) { return std::isfinite(number); })) return;
  throw std::invalid_argument("row " + row.name +
                              " holds a number that is not finite: its measurement divided by "
                              "zero; fix it there");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::optional<double> p50_of(const std::string& name, const std::vector<Measurement>& measurements,
                             const std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (measurements[i].name == name && outcomes[i].error.empty()) return five_digits(outcomes[i].p50);
  }
  return std::nullopt;
}

void replace_or_append(std::vector<Row>& rows, const Row& fresh) {
  const auto same_name = [&](const Row& row) { return row.name == fresh.name; };
  const auto found = std::find_if(rows.begin(), rows.end(), same_name);
  if (found == rows.end()) {
    rows.push_back(fresh);
  } else {
    *found = fresh;
  }
}

// A full disk or a lost connection half-way must not cost the old results: write beside them, then rename.
void write_rows(const std::vector<Row>& rows, const fs::path& path) {
  const fs::path part = path.string() + ".part";
  std::ofstream out(part, std::ios::trunc);
  for (const Row& row : rows) out << to_json_line(row) << '\n';
  out.close();
  std::error_code failed;
  if (out) fs::rename(part, path, failed);
  if (!out || failed) {
    throw std::runtime_error("cannot write " + path.string() + ": free some space, or name another folder with --out");
  }
}

}  // namespace

std::string slug(std::string_view device_name) {
  std::string result;
  for (const char c : device_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && std::isalnum(byte)) {
      result += static_cast<char>(std::tolower(byte));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  if (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "cpu" : result;
}

double five_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::string to_json_line(const Row& row) {
  require_finite(row);
  Json object = {{"name", row.name},
                 {"value", row.value},
                 {"unit", row.unit},
                 {"p50", row.p50},
                 {"p99", row.p99},
                 {"peer", text_or_null(row.peer)},
                 {"peer_value", number_or_null(row.peer_value)},
                 {"limit", number_or_null(row.limit)},
                 {"gpu", row.gpu},
                 {"driver", row.driver},
                 {"date", row.date},
                 {"commit", row.commit}};
  for (const auto& [name, number] : row.numbers) object["numbers"][name] = number;
  return object.dump();
}

Row from_json_line(std::string_view line) try {
  const Json object = Json::parse(line);
  Row row;
  row.name = object.at("name").get<std::string>();
  row.value = object.at("value").get<double>();
  row.unit = object.at("unit").get<std::string>();
  row.p50 = object.at("p50").get<double>();
  row.p99 = object.at("p99").get<double>();
  row.peer = optional_text(object, "peer");
  row.peer_value = optional_number(object, "peer_value");
  row.limit = optional_number(object, "limit");
  row.gpu = object.at("gpu").get<std::string>();
  row.driver = object.at("driver").get<std::string>();
  row.date = object.at("date").get<std::string>();
  row.commit = object.at("commit").get<std::string>();
  if (const auto numbers = object.find("numbers"); numbers != object.end())
    for (const auto& [name, number] : numbers->items()) row.numbers.emplace_back(name, number.get<double>());
  return row;
} catch (const nlohmann::json::exception& caught) {
  throw std::runtime_error(std::string("not a result row: ") + caught.what());
}

std::vector<Row> read_rows(std::istream& in, const fs::path& file) {
  std::vector<Row> rows;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      rows.push_back(from_json_line(line));
    } catch (const std::exception& caught) {
      throw std::runtime_error(file.string() + ", line " + std::to_string(number) + ": " + caught.what() +
                               ". Mend or delete the line, or write elsewhere with --out");
    }
  }
  return rows;
}

std::vector<Row> make_rows(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes,
                           const Stamp& stamp) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (!outcomes[i].error.empty()) continue;
    const double p50 = five_digits(outcomes[i].p50);
    rows.push_back({.name = measurements[i].name,
                    .value = p50,
                    .unit = measurements[i].unit,
                    .p50 = p50,
                    .p99 = five_digits(outcomes[i].p99),
                    .peer = measurements[i].peer,
                    .peer_value = p50_of(measurements[i].peer, measurements, outcomes),
                    .limit = p50_of(measurements[i].limit, measurements, outcomes),
                    .gpu = stamp.gpu,
                    .driver = stamp.driver,
                    .date = stamp.date,
                    .commit = stamp.commit});
  }
  return rows;
}

std::vector<Row> prepare_results(const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw std::runtime_error("cannot create " + folder.string() + " (" + failed.message() +
                             "): name a folder you may write to with --out");
  }
  if (access(folder.c_str(), W_OK) != 0)
    throw std::runtime_error("you may not write to " + folder.string() + ": name another folder with --out");
  std::ifstream in(file);
  return read_rows(in, file);
}

std::string results_folder(const std::string& program, const std::string& out, bool quick) {
  if (!out.empty()) return out;
  if (quick) return {};
  const std::string source = "apps/" + program;
  if (!fs::is_directory(source))
    throw std::runtime_error("there is no " + source +
                             " here: run from the root of the repository, or name a folder with --out");
  return source + "/results";
}

fs::path Report::write(const fs::path& folder, const std::string& gpu) const {
  const fs::path path = folder / (gpu + ".json");
  std::vector<Row> rows = prepare_results(path);
  for (const Row& row : rows_) replace_or_append(rows, row);
  write_rows(rows, path);
  return path;
}

}  // namespace measure
