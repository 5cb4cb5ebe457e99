#include <rapidcheck.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/measure/results.hpp"
#include "tests/apps/measure_support.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using namespace measure;
using Lines = std::vector<std::string>;

namespace {

double some_number() { return *rc::gen::inRange(-1'000'000, 1'000'000) / 977.0; }

// Printable, with the quotes and backslashes that JSON has to escape.
std::string some_text() { return *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~')); }

std::optional<double> some_optional() {
  return *rc::gen::arbitrary<bool>() ? std::optional<double>(some_number()) : std::nullopt;
}

std::vector<std::pair<std::string, double>> some_numbers() {
  std::vector<std::pair<std::string, double>> numbers;
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) numbers.emplace_back(some_text() + std::to_string(i), some_number());
  return numbers;
}

Row some_row() {
  return {.name = some_text(),
          .value = some_number(),
          .unit = some_text(),
          .p50 = some_number(),
          .p99 = some_number(),
          .peer = some_text(),
          .peer_value = some_optional(),
          .limit = some_optional(),
          .gpu = some_text(),
          .driver = some_text(),
          .date = some_text(),
          .commit = some_text(),
          .numbers = some_numbers()};
}

Row row_named(const std::string& name, double value) {
  return {.name = name,
          .value = value,
          .unit = "us",
          .p50 = value,
          .p99 = value,
          .gpu = "cpu",
          .date = "2026-11-20",
          .commit = "c0ffee"};
}

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("flywheel-bench-test-" + std::to_string(getpid()));
  TemporaryFolder() { fs::remove_all(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

Lines lines_of(const fs::path& path) {
  std::ifstream in(path);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("make_rows looks peers and limits up and stamps") {
  std::vector<Measurement> measurements{constant("limit.a", 2), constant("peer.b", 8), constant("runtime.c", 0)};
  measurements[2].peer = "peer.b";
  measurements[2].limit = "limit.a";
  measurements[1].peer = "peer.absent";
  std::vector<Outcome> outcomes{{.p50 = 2, .p99 = 3}, {.p50 = 8, .p99 = 9}, {.p50 = 2.123456789, .p99 = 4}};
  const auto rows = make_rows(measurements, outcomes, {"nvidia-h200", "580.1", "2026-11-20", "c0ffee"});
  REQUIRE(rows.size() == 3);
  CHECK(rows[2] ==
        Row{"runtime.c", 2.1235, "us", 2.1235, 4, "peer.b", 8.0, 2.0, "nvidia-h200", "580.1", "2026-11-20", "c0ffee"});
  CHECK(rows[1].peer == "peer.absent");
  CHECK_FALSE(rows[1].peer_value.has_value());
  CHECK_FALSE(rows[0].limit.has_value());
}

TEST_CASE("a row survives the trip through JSON") {
  CHECK(rc::check([] {
    const Row row = some_row();
    const std::string line = to_json_line(row);
    RC_ASSERT(line.find('\n') == std::string::npos);
    RC_ASSERT(from_json_line(line) == row);
  }));
}

TEST_CASE("a JSON line looks as promised") {
  Row row = row_named("limit.hop", 0.54);
  row.limit = 0.5;
  CHECK(to_json_line(row) ==
        R"({"name":"limit.hop","value":0.54,"unit":"us","p50":0.54,"p99":0.54,"peer":null,"peer_value":null,)"
        R"("limit":0.5,"gpu":"cpu","driver":"","date":"2026-11-20","commit":"c0ffee"})");
  row.numbers = {{"p99_9", 2.5}, {"load", 1}};
  CHECK(mentions(to_json_line(row), {R"("commit":"c0ffee","numbers":{"p99_9":2.5,"load":1.0}})"}));
}

TEST_CASE("bad rows and bad lines are named") {
  Row row = row_named("limit.hop", 1);
  row.limit = INFINITY;
  CHECK(mentions(error_of([&] { to_json_line(row); }), {"limit.hop"}));
  row.limit.reset();
  row.numbers = {{"load", NAN}};
  CHECK(mentions(error_of([&] { to_json_line(row); }), {"limit.hop"}));
  row.numbers = {{"load", 1}};
  std::string line = to_json_line(row);
  line.replace(line.find("1.0}}"), 3, "\"x\"");
  CHECK_THROWS_AS(from_json_line(line), std::runtime_error);
  CHECK(mentions(error_of([&] { from_json_line("{}"); }), {"name"}));
  CHECK_THROWS_AS(from_json_line("{\"name\":"), std::runtime_error);
  CHECK_THROWS_AS(from_json_line(R"({"name":7})"), std::runtime_error);
}

TEST_CASE("a device name becomes a file name") {
  CHECK(slug("NVIDIA H200") == "nvidia-h200");
  CHECK(slug("NVIDIA GeForce RTX 4090") == "nvidia-geforce-rtx-4090");
  CHECK(slug("  Tesla V100-SXM2 (32GB) ") == "tesla-v100-sxm2-32gb");
  CHECK(slug("") == "cpu");
  CHECK(rc::check([] {
    const std::string name = slug(some_text());
    RC_ASSERT(!name.empty());
    RC_ASSERT(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
    RC_ASSERT(name.front() != '-');
    RC_ASSERT(name.back() != '-');
    RC_ASSERT(name.find("--") == std::string::npos);
    RC_ASSERT(slug(name) == name);
  }));
}

TEST_CASE("today is an ISO date") {
  const std::string date = today();
  REQUIRE(date.size() == 10);
  CHECK(date[4] == '-');
  CHECK(date[7] == '-');
  CHECK(date >= "2026-01-01");
}

TEST_CASE("a report file keeps the rows that were not measured again") {
  const TemporaryFolder folder;
  Report first, second;
  first.add(row_named("limit.a", 1));
  first.add(row_named("limit.b", 2));
  second.add(row_named("limit.b", 3));
  second.add(row_named("limit.c", 4));
  first.write(folder.path / "deep", "cpu");
  const fs::path path = second.write(folder.path / "deep", "cpu");
  CHECK(path.filename() == "cpu.json");
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 3);
  CHECK(from_json_line(lines[0]) == row_named("limit.a", 1));
  CHECK(from_json_line(lines[1]) == row_named("limit.b", 3));
  CHECK(from_json_line(lines[2]) == row_named("limit.c", 4));
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a report does not overwrite what it cannot read") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "cpu.json") << to_json_line(row_named("limit.a", 1)) << "\noops\n";
  Report report;
  report.add(row_named("limit.b", 2));
  CHECK(mentions(error_of([&] { report.write(folder.path, "cpu"); }), {"cpu.json, line 2", "--out"}));
  CHECK(lines_of(folder.path / "cpu.json").back() == "oops");
}

TEST_CASE("a report says which folder it may not use") {
  const TemporaryFolder folder;
  std::ofstream(folder.path) << "a file";
  Report report;
  CHECK(mentions(error_of([&] { report.write(folder.path / "below", "cpu"); }), {"--out"}));
}

TEST_CASE("the table lines up and shows ratios") {
  Row row = row_named("runtime.hop", 1.2);
  row.peer = "peer.x";
  row.peer_value = 2.4;
  row.limit = 0.6;
  Report report;
  report.add(row);
  report.add(row_named("limit.a_rather_long_name", 12345));
  std::ostringstream out;
  report.print(out);
  std::istringstream in(out.str());
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].size() == lines[1].size());
  CHECK(lines[1].size() == lines[2].size());
  CHECK(mentions(lines[1], {"peer.x 2.400", "0.500x", "2.000x"}));
  CHECK(mentions(lines[2], {"12345"}));
}
