// The program bfs on CPU workers, and its arguments.
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "measure_support.hpp"
#include "support/program.hpp"

namespace bfs {
namespace {

namespace testing = flywheel::testing;
using measure::mentions;
using measure::number_of;
using measure::rows_of;

testing::Answer ask_bfs(const std::string& arguments) {
  return testing::ask("apps/bfs/bfs", "--cpu --workers 2 --quick " + arguments, "2>&1");
}

}  // namespace

TEST_CASE("bfs: on CPU workers the rows are whole") {
  const measure::TempResults folder("bfs");
  const testing::Answer answer = ask_bfs("--scale 9 --grid 20 --roots 2 --commit abc --out " + folder.path().string());
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  auto rows = rows_of(folder.path() / "cpu.json");
  for (const char* name :
       {"grain.bfs_grid_20", "grain.bfs_grid_20.top_down", "grain.sssp_grid_20", "grain.bfs_9", "grain.sssp_9"}) {
    INFO(name);
    REQUIRE(rows.contains(name));
    CHECK((rows[name].value > 0 && rows[name].unit == "ms" && rows[name].commit == "abc"));
    CHECK(number_of(rows[name], "gteps") > 0);
  }
  CHECK(mentions(answer.text, {"400 vertices, 1520 directed edges", "root 0: 38 levels, 760 edges traversed"}));
}

TEST_CASE("bfs: what cannot be is refused") {
  for (const std::string wrong :
       {"--scale 26", "--grid 9000", "--roots 0", "--repeat 0", "--delta 0", "--workers 0", "--out /dev/null/below"}) {
    const testing::Answer answer = ask_bfs(wrong);
    INFO(wrong << "\n" << answer.text);
    CHECK(answer.code != 0);
    CHECK(mentions(answer.text, {wrong.substr(0, wrong.find(' ')).c_str()}));
  }
}

}  // namespace bfs
