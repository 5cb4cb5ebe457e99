#include "apps/llama/bench/soak.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>

#include "apps/llama/bench/positions.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLines = std::chrono::seconds(10);

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string line_of(const char* format, const SoakResult& result) {
  char text[200];
  std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(result.tokens),
                static_cast<unsigned long long>(result.runs), result.seconds, static_cast<unsigned long long>(result.checksum),
                static_cast<unsigned long long>(result.different));
  return text;
}

int checked_context(const Config& config, const SoakRequest& request) {
  if (request.tokens == 0 || request.length == 0)
    throw RequestError("a soak of no tokens shows nothing: ask for --tokens and --length of 1 or more");
  return positions_of_run(config, request.start, request.length, "--length " + std::to_string(request.length));
}

}  // namespace

std::uint64_t checksum_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const float value : values) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  }
  return hash;
}

SoakResult soak(const BenchModel& model, const SoakRequest& request, const Options& options, const OnLine& on_line) {
  const int context = checked_context(model.config, request);
  Runtime runtime =
      start_tuned_runtime(tuned_options(model.config, {.context = context, .prompts = PromptWay::token_by_token}, options));
  TunedGenerator generator(runtime, model.config, model.weights(runtime), context, 1, PromptWay::token_by_token);
  SoakResult result;
  const auto begin = Clock::now();
  auto next_line = begin + kBetweenLines;
  while (result.passed && result.tokens < request.tokens) {
    generator.run(request.start, request.length);
    const std::uint64_t checksum = checksum_of(generator.last_logits());
    if (result.runs == 0) result.checksum = checksum;
    result.passed = checksum == result.checksum;
    if (!result.passed) result.different = checksum;
    ++result.runs;
    result.tokens += request.length;
    result.seconds = seconds_since(begin);
    if (Clock::now() < next_line) continue;
    on_line(line_of("soak: %llu tokens in %llu runs, %.0f s, checksum %016llx", result));
    next_line += kBetweenLines;
  }
  return result;
}

std::string describe(const SoakResult& result) {
  if (result.passed) return line_of("soak: PASSED: %llu tokens in %llu runs, %.1f s; all ended with checksum %016llx", result);
  return line_of("soak: FAILED: %llu tokens in %llu runs, %.1f s; the first ended with checksum %016llx, the last with %016llx",
                 result);
}

}  // namespace llama
