// simulate [--seed N | --first-seed N] [--count K] [--seconds S] [--jobs N] [--schedule NAME] [--shape NAME] [--strong]
// [--steps K] [--findings K] [--weaken PLACE[=ORDER],...] [--narrow PLACE,...] [--sites] [--shrink]: see README.md.
#include <sys/personality.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "simulate/campaign.hpp"

namespace flywheel::simulate {

namespace {

bool shrinks = false;

template <class Enum, std::size_t N>
Enum named(const char* const (&names)[N], const char* name) {
  for (std::size_t i = 0; i < N; ++i)
    if (!std::strcmp(names[i], name)) return static_cast<Enum>(i);
  std::fprintf(stderr, "'%s' is none of:", name);
  for (const char* known : names) std::fprintf(stderr, " %s", known);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

/// PLACE[=ORDER],...
void parse_weakened(const char* text) {
  constexpr const char* kOrders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t mark = part.find('=');
    const int order = mark == std::string::npos ? 0 : named<int>(kOrders, part.c_str() + mark + 1);
    request.settings.weakened.push_back({std::strtoull(part.c_str(), nullptr, 16), order});
  }
}

/// PLACE,...
void parse_narrowed(const char* text) {
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');)
    request.settings.narrowed.push_back(std::strtoull(part.c_str(), nullptr, 16));
}

bool parse_switch(const std::string& flag) {
  if (flag == "--strong") request.settings.weak = false;
  else if (flag == "--sites") request.sites = true;
  else if (flag == "--shrink") shrinks = true;
  else return false;
  return true;
}

bool parse_value(const std::string& flag, const char* value) {
  if (flag == "--seed" || flag == "--first-seed") request.settings.seed = number(value);
  else if (flag == "--count") request.count = number(value);
  else if (flag == "--seconds") request.seconds = std::strtod(value, nullptr);
  else if (flag == "--jobs") request.jobs = std::max<std::uint64_t>(1, number(value));
  else if (flag == "--findings") request.findings = number(value);
  else if (flag == "--steps") request.settings.most_steps = number(value);
  else if (flag == "--weaken") parse_weakened(value);
  else if (flag == "--narrow") parse_narrowed(value);
  else if (flag == "--schedule") request.settings.schedule = named<Schedule>(kScheduleNames, value);
  else if (flag == "--shape" && !std::strncmp(value, "gpu", 3))
    request.emulated = named<emulated::Shape>(emulated::kShapeNames, value);
  else if (flag == "--shape" && !std::strcmp(value, "all")) request.all = true;
  else if (flag == "--shape") request.shape = named<Shape>(kShapeNames, value);
  else return false;
  return true;
}

void parse(int argc, char** argv) {
  bool one = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    one = one || flag == "--seed";
    if (parse_switch(flag)) continue;
    if (i + 1 < argc && parse_value(flag, argv[i + 1])) {
      ++i;
      continue;
    }
    std::fprintf(stderr, "unknown option, or one without its value: %s. See tests/simulate/README.md\n", flag.c_str());
    std::exit(2);
  }
  if (!request.count && request.seconds == 0) request.count = one ? 1 : 1000;
}

}  // namespace

}  // namespace flywheel::simulate

int main(int argc, char** argv) {
  using namespace flywheel::simulate;
  const int before = personality(0xffffffff);
  if (!(before & ADDR_NO_RANDOMIZE) && personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) != -1)
    execv("/proc/self/exe", argv);  // addresses that are the same each time: a seed is a run
  __libc_single_threaded = 0;       // else libstdc++ counts references without atomics
  parse(argc, argv);
  return shrinks ? shrink(request.settings.seed) : run_campaign();
}
