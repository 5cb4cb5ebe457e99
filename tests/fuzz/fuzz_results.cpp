// A results file of apps/measure: whatever the text, it is refused with a std::runtime_error, or its rows print, and read the
// same after they were written.
#include <sstream>

#include "apps/measure/results.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace measure;
using flywheel::fuzz::expect;

namespace {

void check_row(const Row& row) {
  expect(from_json_line(to_json_line(row)) == row, "a row reads as it was written");
  expect(!slug(row.gpu).empty(), "a card has a name");
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  std::istringstream in{std::string(input)};
  try {
    Report report;
    for (const Row& row : read_rows(in, "cpu.json")) {
      check_row(row);
      report.add(row);
    }
    std::ostringstream out;
    report.print(out);
  } catch (const std::runtime_error&) {}
}
