// The program serve_bench on CPU workers for about a second, and its arguments.
#include <filesystem>
#include <string>

#include "apps/serve_bench/options.hpp"
#include "apps/serve_bench/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "support/program.hpp"

namespace serve {
namespace {

namespace fs = std::filesystem;
namespace testing = flywheel::testing;
using measure::error_of;
using measure::mentions;
using measure::number_of;
using measure::rows_of;

/// The text is what came on stderr.
testing::Answer ask_serve_bench(const std::string& arguments) {
  return testing::ask("apps/serve_bench/serve_bench", "--threads 2 --workers 1 --quick " + arguments, "2>&1 >/dev/null",
                      "CUDA_VISIBLE_DEVICES=");
}

}  // namespace

TEST_CASE("serve_bench: on CPU workers nothing is lost and the rows are whole") {
  const measure::TempResults folder("serve_bench");
  const std::string kind = GENERATE("task", "batch", "graph");
  const testing::Answer answer =
      ask_serve_bench("--workloads " + kind + ":10 --seconds 0.3 --search-seconds 0.1 --fractions 0.5" +
                      " --no-busy --commit abc --out " + folder.path().string());
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  auto rows = rows_of(folder.path() / "cpu.json");
  const std::string name = "serve." + kind + ".10us.flywheel";
  CHECK(rows.size() == 7);  // the capacity, high alone, two loads of two priorities, the excess
  REQUIRE(rows.contains(name + ".sustainable"));
  CHECK(rows[name + ".sustainable"].value > 0);
  CHECK(rows.contains(name + ".alone.x0.05.high"));
  CHECK(rows.contains(name + ".high_excess"));
  for (const std::string step : {".x0.50", ".x2.00"})
    for (const std::string priority : {".high", ".normal"}) {
      REQUIRE(rows.contains(name + step + priority));
      const measure::Row& row = rows[name + step + priority];
      CHECK(row.commit == "abc");
      CHECK(row.p50 >= 10);  // the tasks themselves
      CHECK(row.p50 <= row.p99);
      CHECK(row.p99 <= number_of(row, "p99_9"));
      CHECK(number_of(row, "p99_9") <= number_of(row, "max") * 1.0001);  // both have five digits
      CHECK(number_of(row, "requests") > 0);
      CHECK(number_of(row, "lost") == 0);
      CHECK(number_of(row, "wrong") == 0);
      CHECK(number_of(row, "resident_most_mib") > 1);
    }
}

TEST_CASE("serve_bench: the services in turns, all cores busy") {
  const testing::Answer answer =
      ask_serve_bench("--workloads task:20 --seconds 0.1 --search-seconds 0.1 --fractions 0.5 --busy-fractions 0.2");
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK(mentions(answer.text, {"serve.task.20us.flywheel: the sustainable load", "x2.00", "busy.x0.20"}));
}

TEST_CASE("serve_bench: what cannot be is refused before anything is measured") {
  for (const std::string wrong : {"--workloads tasks", "--workloads task:0", "--workloads task:1x", "--services other",
                                  "--threads 0", "--fractions 0", "--out /dev/null/below", "--overload -1"}) {
    const testing::Answer answer = ask_serve_bench(wrong);
    INFO(wrong << "\n" << answer.text);
    CHECK(answer.code != 0);
    CHECK(mentions(answer.text, {wrong.substr(0, wrong.find(' ')).c_str()}));
    CHECK_FALSE(mentions(answer.text, {"sustainable load"}));
  }
}

TEST_CASE("serve_bench: a workload is read from its name") {
  CHECK(parse_workload("graph:2").name() == "graph.2us");
  CHECK(parse_workload("batch").name() == "batch.20us");
  CHECK(parse_workload("task:0.5").tasks() == 1);
  CHECK(mentions(error_of([] { parse_workload("task:"); }), {"task:", "as in task:20"}));
}

TEST_CASE("serve_bench: the excess is p99 of high priority at the overload over that alone") {
  const auto measured = [](const char* step, double fraction, std::int64_t high_us, std::uint64_t normal) {
    Measured m{"task.20us", "flywheel", step, fraction, 0, {}};
    m.trial.high.latency.add(1000 * high_us);
    m.trial.normal.arrived = normal;
    return m;
  };
  const std::vector<Measured> all{measured("alone.x0.05", 0.05, 32, 0), measured("x0.50", 0.5, 40, 9),
                                  measured("x2.00", 2, 63, 9), measured("busy.x0.50", 0.5, 500, 9)};
  const auto rows = excess_rows(all, {});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "serve.task.20us.flywheel.high_excess");
  CHECK(rows[0].value == Approx(31).margin(0.5));
}

}  // namespace serve
