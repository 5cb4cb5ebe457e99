// The program `bench` and its arguments: what it refuses, it refuses before it measures anything.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "measure_support.hpp"
#include "support/program.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
namespace testing = flywheel::testing;
using measure::mentions;
using testing::Answer;

/// The text is what came on stderr.
Answer ask_bench(const std::string& arguments, const std::string& output = "/dev/null") {
  return testing::ask("apps/bench/bench", "--quick --rounds 1 --rows soak.tasks " + arguments, "2>&1 >" + output,
                      "CUDA_VISIBLE_DEVICES=");
}

bool measured(const Answer& answer) { return mentions(answer.text, {"round 1"}); }

}  // namespace

TEST_CASE("bench: a row on CPU workers") {
  const Answer answer = ask_bench("--soak-tasks 1000");
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK(measured(answer));
}

TEST_CASE("bench: fewer tasks than one are refused") {
  for (const char* const number : {"-1", "0", "many"}) {
    const Answer answer = ask_bench(std::string("--soak-tasks ") + number);
    INFO(answer.text);
    CHECK(answer.code != 0);
    CHECK(mentions(answer.text, {"--soak-tasks"}));
    CHECK_FALSE(measured(answer));
  }
}

TEST_CASE("bench: a folder that cannot be made is told before anything is measured") {
  const Answer answer = ask_bench("--soak-tasks 1000 --out /dev/null/below");
  INFO(answer.text);
  CHECK(answer.code == 1);
  CHECK(mentions(answer.text, {"/dev/null/below", "--out"}));
  CHECK_FALSE(measured(answer));
}

TEST_CASE("bench: results that cannot be read are told before anything is measured, and stay") {
  const fs::path folder = fs::temp_directory_path() / ("flywheel-bench-rows-" + std::to_string(getpid()));
  const fs::path file = folder / "cpu.json";
  fs::create_directories(folder);
  std::ofstream(file) << "{\"name\": half a ro";
  const Answer answer = ask_bench("--soak-tasks 1000 --out " + folder.string());
  INFO(answer.text);
  CHECK(answer.code == 1);
  CHECK(mentions(answer.text, {"cpu.json, line 1", "Mend or delete"}));
  CHECK_FALSE(measured(answer));
  CHECK(fs::file_size(file) == 18);
  fs::remove_all(folder);
}

TEST_CASE("bench: output that cannot be written is a failure") {
  const Answer answer = ask_bench("--soak-tasks 1000", "/dev/full");
  INFO(answer.text);
  CHECK(answer.code == 1);
  CHECK(mentions(answer.text, {"cannot write all of the output"}));
}

}  // namespace bench
