#include "apps/serve_bench/rows.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace serve {
namespace {

using measure::five_digits;
using measure::Row;
using measure::Stamp;

Row row_of(const std::string& name, const char* unit, double p50, double p99, const Stamp& stamp) {
  return {.name = name,
          .value = five_digits(p50),
          .unit = unit,
          .p50 = five_digits(p50),
          .p99 = five_digits(p99),
          .gpu = stamp.gpu,
          .driver = stamp.driver,
          .date = stamp.date,
          .commit = stamp.commit};
}

double us(const Outcome& outcome, double percent) { return outcome.latency.percentile_ns(percent) / 1000; }

std::optional<double> rate_of(const std::vector<Capacity>& all, const std::string& workload, const std::string& service) {
  for (const Capacity& one : all)
    if (one.service == service && one.workload.name() == workload) return five_digits(one.load.per_second / 1e6);
  return std::nullopt;
}

Row latency_row(const Measured& m, const char* priority, const Outcome& outcome, const Stamp& stamp) {
  Row row =
      row_of(name_of(m.workload, m.service) + "." + m.step + "." + priority, "us", us(outcome, 50), us(outcome, 99), stamp);
  row.numbers = {{"p99_9", five_digits(us(outcome, 99.9))},
                 {"max", five_digits(static_cast<double>(outcome.latency.max_ns()) / 1000)},
                 {"fraction", m.fraction},
                 {"offered_per_s", five_digits(m.offered_per_second)},
                 {"answered_per_s", five_digits(m.trial.answered_per_second())},
                 {"requests", static_cast<double>(outcome.arrived)},
                 {"wrong", static_cast<double>(outcome.wrong)},
                 {"lost", static_cast<double>(outcome.lost)},
                 {"resident_before_mib", five_digits(m.trial.memory.before)},
                 {"resident_most_mib", five_digits(m.trial.memory.most)},
                 {"resident_after_mib", five_digits(m.trial.memory.after)}};
  return row;
}

std::string number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::vector<std::string> percentiles(const Outcome& outcome) {
  if (outcome.latency.count() == 0) return {"-", "-", "-"};
  std::vector<std::string> all;
  for (const double percent : {50.0, 99.0, 99.9}) all.push_back(number(us(outcome, percent), "%.1f"));
  return all;
}

std::vector<std::string> line_of(const Measured& m) {
  std::vector<std::string> line{m.workload, m.service, m.step, number(m.offered_per_second / 1000, "%.2f"),
                                number(m.trial.answered_per_second() / 1000, "%.2f")};
  for (const Outcome* outcome : {&m.trial.high, &m.trial.normal})
    for (std::string& text : percentiles(*outcome)) line.push_back(std::move(text));
  line.push_back(number(m.trial.memory.most - m.trial.memory.before, "%.1f"));
  line.push_back(std::to_string(m.trial.wrong()));
  line.push_back(std::to_string(m.trial.lost()));
  return line;
}

/// The trial with which the service was idle but for high priority, and that with the largest load.
std::pair<const Measured*, const Measured*> idle_and_overloaded(const std::vector<Measured>& all, const Measured& like) {
  const Measured *idle = nullptr, *overloaded = nullptr;
  for (const Measured& m : all) {
    if (m.workload != like.workload || m.service != like.service) continue;
    if (m.trial.normal.arrived == 0) idle = &m;
    else if (m.step.starts_with('x') && m.fraction > 1 && (!overloaded || m.fraction > overloaded->fraction)) overloaded = &m;
  }
  return {idle, overloaded};
}

}  // namespace

std::string name_of(const std::string& workload, const std::string& service) { return "serve." + workload + "." + service; }

std::vector<Row> capacity_rows(const std::vector<Capacity>& all, const Stamp& stamp) {
  std::vector<Row> rows;
  for (const Capacity& one : all) {
    const double rate = one.load.per_second / 1e6;
    Row row = row_of(name_of(one.workload.name(), one.service) + ".sustainable", "M/s", rate, rate, stamp);
    if (one.service == "flywheel") {
      row.peer_value = rate_of(all, one.workload.name(), "launch");
      if (row.peer_value) row.peer = name_of(one.workload.name(), "launch") + ".sustainable";
    }
    if (one.workers) row.limit = five_digits(one.workers / (one.workload.task_us * one.workload.tasks()));
    row.numbers = {{"closed_loop", five_digits(one.load.closed_per_second / 1e6)},
                   {"tasks_a_request", static_cast<double>(one.workload.tasks())}};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> latency_rows(const Measured& measured, const Stamp& stamp) {
  std::vector<Row> rows;
  const Trial& trial = measured.trial;
  if (trial.high.latency.count()) rows.push_back(latency_row(measured, "high", trial.high, stamp));
  if (trial.normal.latency.count()) rows.push_back(latency_row(measured, "normal", trial.normal, stamp));
  return rows;
}

std::vector<Row> excess_rows(const std::vector<Measured>& all, const Stamp& stamp) {
  std::vector<Row> rows;
  for (const Measured& m : all) {
    const auto [idle, overloaded] = idle_and_overloaded(all, m);
    if (overloaded != &m || !idle) continue;
    const double excess = us(m.trial.high, 99) - us(idle->trial.high, 99);
    Row row = row_of(name_of(m.workload, m.service) + ".high_excess", "us", excess, excess, stamp);
    row.numbers = {{"fraction", m.fraction}};
    rows.push_back(std::move(row));
  }
  return rows;
}

void print(std::ostream& out, const std::vector<Measured>& all) {
  measure::TextTable lines{{"workload", "service", "load", "offered k/s", "answered k/s", "high p50 us", "p99", "p99.9",
                            "normal p50 us", "p99", "p99.9", "grown MiB", "wrong", "lost"}};
  for (const Measured& m : all) lines.push_back(line_of(m));
  measure::print_aligned(out, lines, {0, 1, 2});
}

}  // namespace serve
