#include "apps/measure/measurement.hpp"

#include <fnmatch.h>

#include <exception>
#include <set>
#include <stdexcept>

namespace measure {
namespace {

std::string list_names(const std::vector<Measurement>& all) {
  std::string names;
  for (const Measurement& one : all) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

// Adds peers and limits until nothing new comes in: a limit may have a limit of its own.
void add_references(const std::vector<Measurement>& all, std::set<std::string>& wanted) {
  for (std::size_t before = 0; before != wanted.size();) {
    before = wanted.size();
    for (const Measurement& one : all) {
      if (wanted.count(one.name) != 0) wanted.insert({one.peer, one.limit});
    }
  }
}

// The samples of one measurement, round by round.
struct Collected {
  Samples medians;
  Samples all;
  std::string error;

  void take(const Measurement& measurement) try {
    const Samples samples = measurement.round();
    medians.push_back(percentile(samples, 50));
    all.insert(all.end(), samples.begin(), samples.end());
  } catch (const std::exception& caught) {
    error = caught.what();
  }

  Outcome outcome(Better better) const {
    if (!error.empty()) return {.error = error};
    return {.p50 = percentile(medians, 50), .p99 = tail(all, 99, better), .rounds = static_cast<int>(medians.size())};
  }
};

}  // namespace

std::vector<Measurement> select_rows(const std::vector<Measurement>& all, const std::string& glob, bool have_gpu) {
  std::set<std::string> wanted;
  for (const Measurement& one : all) {
    if (fnmatch(glob.c_str(), one.name.c_str(), 0) == 0) wanted.insert(one.name);
  }
  if (wanted.empty() && have_gpu) {
    throw std::invalid_argument("--rows '" + glob + "' matches no row: choose among " + list_names(all));
  }
  add_references(all, wanted);
  std::vector<Measurement> selected;
  for (const Measurement& one : all) {
    if (wanted.count(one.name) != 0 && (have_gpu || !one.needs_gpu)) selected.push_back(one);
  }
  return selected;
}

std::vector<Outcome> interleave(const std::vector<Measurement>& measurements, int rounds, const OnRound& on_round) {
  if (rounds < 1) throw std::invalid_argument("--rounds must be at least 1");
  std::vector<Collected> collected(measurements.size());
  for (int round = 1; round <= rounds; ++round) {
    for (std::size_t i = 0; i < measurements.size(); ++i) {
      if (!collected[i].error.empty() || round > measurements[i].max_rounds) continue;
      if (on_round) on_round(measurements[i].name, round);
      collected[i].take(measurements[i]);
    }
  }
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    outcomes.push_back(collected[i].outcome(better_for(measurements[i].unit)));
  }
  return outcomes;
}

}  // namespace measure
