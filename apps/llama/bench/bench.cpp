#include "apps/llama/bench/bench.hpp"

#include <algorithm>
#include <cstdio>
#include <flywheel/version.hpp>
#include <fstream>

#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/check_context.hpp"
#include "apps/llama/bench/mixed.hpp"
#include "apps/llama/bench/positions.hpp"
#include "apps/llama/bench/prompts.hpp"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "apps/llama/tuned/step_bytes.hpp"
#include "apps/measure/limits.hpp"

namespace llama {
namespace {

constexpr std::uint32_t kTokensOfCheck = 8, kTokensOfTrace = 8;
constexpr std::uint32_t kTraceEvents = 8192;
constexpr std::chrono::milliseconds kParkAfter{5};  // the peers need the SMs
constexpr std::uint64_t kSeedOfCache = 77;

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file.string() + ": free some space, or name another file");
}

/// What is asked of the tuned decode, and perhaps of the peers: more than to hold it against the portable tasks.
bool traces(const BenchRequest& request) { return !request.trace.empty() || !request.prompt_trace.empty(); }

bool measures(const BenchRequest& request) { return request.runs > 0 || traces(request) || !request.schedule.empty(); }

struct Steps {
  explicit Steps(const BenchRequest& request) : count(std::max({request.tokens, kTokensOfCheck, kTokensOfTrace})) {
    if (request.tokens == 0) throw RequestError("there are no tokens to write: ask for --tokens of 1 or more");
    const std::string number = std::to_string(count);
    asked = count > request.tokens ? "a check of " + number + " tokens" : "--tokens " + number;
  }
  std::uint32_t count;  // of the longest run
  std::string asked;    // as what
};

std::vector<std::uint32_t> starts_of(const Config& config, const BenchRequest& request) {
  const Steps steps(request);
  return request.contexts.empty() ? default_starts(config, steps.count, steps.asked) : request.contexts;
}

int room_for(const Config& config, const BenchRequest& request) {
  const Steps steps(request);
  const std::vector<std::uint32_t> starts = starts_of(config, request);
  int room = positions_of_run(config, *std::ranges::max_element(starts), steps.count, steps.asked);
  for (const std::uint32_t length : request.prompts) room = std::max(room, positions_of_prompt(config, length));
  if (request.mixed) room = std::max(room, positions_of_mixed(config));
  return room;
}

PromptWay way_of(const BenchRequest& request) {
  return request.prompts.empty() && !request.mixed ? PromptWay::token_by_token : PromptWay::best;
}

void check_writable(const char* option, const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    throw RequestError(std::string(option) + " " + file.string() + ": the folder " + folder.string() +
                       " does not exist: make it, or name another");
  if (std::filesystem::is_directory(file))
    throw RequestError(std::string(option) + " " + file.string() + " is a folder: name a file");
}

/// Whatever can be said against a request before it costs time.
void check(const Config& config, const BenchRequest& request) {
  check_writable("--trace", request.trace);
  check_writable("--trace-prompt", request.prompt_trace);
  if (!request.prompt_trace.empty() && request.prompts.empty())
    throw RequestError("--trace-prompt needs the length of a prompt: give --prefill too");
  check_writable("--schedule", request.schedule);
  positions_of_check(config, request.portable_check);
  if (!request.portable_contexts.empty()) positions_of_contexts(config, request.portable_contexts);
  for (const PeerShape& shape : request.peer_shapes) check_shape(shape);
  if (measures(request)) room_for(config, request);
}

/// Peers are operations of the compiled decode, which writes fewer texts.
bool has_peers(const BenchRequest& request) { return request.peers && request.batch <= kMostSequences; }

Options options_of(const BenchModel& model, const BenchRequest& request, int context) {
  Options options = request.options;
  options.park_after = kParkAfter;
  if (traces(request)) options.trace_events = kTraceEvents;
  return tuned_options(model.config, {context, request.batch, has_peers(request) ? 2 : 1, way_of(request)}, options);
}

/// What limit.read_hbm measures, in GB/s; empty where there is no GPU. Nothing may be resident.
Samples measure_limit() {
  for (const measure::Measurement& row : measure::limit_rows({.quick = true}))
    if (row.name == "limit.read_hbm") return row.round();
  return {};
}

/// Our decode and the peers, on one model.
class Bench {
 public:
  Bench(const BenchModel& model, const BenchRequest& request)
      : request_(request),
        starts_(starts_of(model.config, request)),
        context_(room_for(model.config, request)),
        runtime_(start_tuned_runtime(options_of(model, request, context_))),
        ours_(runtime_, model.config, model.weights(runtime_), context_, request.batch, way_of(request)) {
    std::fprintf(stderr, "%s: %u tasks for %u workers on %s\n", model.name.c_str(), ours_.tasks(), runtime_.workers(),
                 runtime_.device().c_str());
    if (has_peers(request) && request.runs > 0 && runtime_.on_gpu()) choose_peers();
  }

  void write_schedule() const {
    if (!request_.schedule.empty()) write_text(request_.schedule, ours_.describe());
  }
  void write_traces() {
    if (!request_.trace.empty())
      write_trace(request_.trace, [&](Trace& trace) { ours_.run(starts_.front(), kTokensOfTrace, &trace); });
    if (!request_.prompt_trace.empty())
      write_trace(request_.prompt_trace, [&](Trace& trace) { trace_prompt(ours_, request_.prompts.front(), trace); });
  }

  std::vector<DecodeTimes> measure() {
    std::vector<DecodeTimes> all;
    if (request_.runs > 0)
      for (const std::uint32_t start : starts_) all.push_back(measure(start));
    return all;
  }
  std::vector<PromptTimes> measure_prompts() {
    if (request_.runs == 0) return {};
    return llama::measure_prompts(ours_, request_.prompts, request_.runs);
  }
  MixedTimes measure_mixed() {
    if (request_.mixed == 0 || request_.runs == 0) return {};
    return llama::measure_mixed(ours_, request_.mixed, request_.runs);
  }

 private:
  /// make(trace) fills it.
  template <class Make>
  static void write_trace(const std::filesystem::path& file, const Make& make) {
    Trace trace;
    make(trace);
    write_text(file, trace.chrome_json());
    std::printf("%s", trace.report().c_str());
  }
  DecodeTimes measure(std::uint32_t start) {
    DecodeTimes times;
    times.context = start;
    // A step at position p reads p + 1 positions.
    times.step_bytes = step_bytes(ours_.config(), ours_.sequences(), start + (request_.tokens + 1) / 2.);
    fill_cache(runtime_, ours_.memory(), kSeedOfCache);
    if (peers_) check_peers(start);
    for (int round = 0; round <= request_.runs; ++round) take_round(times, start, round > 0);
    return times;
  }

  std::unique_ptr<Peers> make_peers(const PeerShape& shape) {
    return Peers::make(runtime_, ours_.config(), ours_.streamed_weights(), context_, request_.batch, shape);
  }
  /// The peers are at their best with programmatic dependent launch: what is fastest there is what we are held against.
  void choose_peers() {
    const PeerShape* best = nullptr;
    double least = 0;
    for (const PeerShape& shape : request_.peer_shapes) {
      const std::unique_ptr<Peers> tried = make_peers(shape);
      if (!tried) return;
      tried->run(PeerWay::graph_pdl, starts_.front(), kTokensOfCheck);
      const double ms = tried->run(PeerWay::graph_pdl, starts_.front(), request_.tokens);
      std::fprintf(stderr, "peers with %d blocks an SM and %d pages ahead: %.4f ms a token\n", shape.blocks_per_sm,
                   shape.pages_ahead, ms);
      if (best && ms >= least) continue;
      best = &shape;
      least = ms;
    }
    if (best) peers_ = make_peers(*best);
  }

  void take_round(DecodeTimes& times, std::uint32_t start, bool counts) {
    const auto keep = [&](Samples& samples, double value) {
      if (counts) samples.push_back(value);
    };
    keep(times.ours, ours_.run(start, request_.tokens).count() * 1e3 / request_.tokens);
    keep(times.drawn, ours_.run(start, request_.tokens, nullptr, kUsualSampling).count() * 1e3 / request_.tokens);
    if (peers_)
      for (const PeerWay way : kPeerWays)
        keep(times.peers[static_cast<std::size_t>(way)], peers_->run(way, start, request_.tokens));
    if (!counts || !runtime_.on_gpu()) return;
    wait_until_idle(runtime_);
    const Samples rates = measure_limit();
    if (!rates.empty()) times.read_rates.push_back(measure::percentile(rates, 50));
  }

  /// After each of the first tokens. Logits differ by what sums in another order differ, so the likeliest token of two that are
  /// as good as alike may be another: what follows is then another text, and says nothing.
  void check_peers(std::uint32_t start) {
    std::vector<std::vector<float>> wanted;
    for (std::uint32_t tokens = 1; tokens <= kTokensOfCheck; ++tokens) {
      ours_.run(start, tokens);
      wanted.push_back(ours_.last_logits());
    }
    for (const PeerWay way : kPeerWays) {
      peers_->fill_cache(kSeedOfCache);
      double worst = 0;
      std::uint32_t tokens = 0;
      for (bool same = true; same && tokens < kTokensOfCheck;) {
        const std::vector<float>& ours = wanted[tokens++];
        peers_->run(way, start, tokens);
        const std::vector<float> theirs = peers_->last_logits();
        worst = std::max(worst, relative_error(theirs, ours));
        if (!(worst < kMostPeerError)) refuse_peer(way, tokens);
        same = likeliest(theirs) == likeliest(ours);
      }
      std::fprintf(stderr, "peer %s, position %u: relative error of logits %.2e, %u tokens alike\n", describe(way), start,
                   worst, tokens);
    }
  }
  [[noreturn]] static void refuse_peer(PeerWay way, std::uint32_t tokens) {
    throw PeersAreWrong(std::string("the logits of the peer ") + describe(way) + " are not ours after " +
                        std::to_string(tokens) +
                        " tokens: find out who is wrong with --portable-check, or measure with --no-peers");
  }
  /// The likeliest token of each text.
  std::vector<std::size_t> likeliest(const std::vector<float>& logits) const {
    const std::size_t texts = static_cast<std::size_t>(ours_.sequences()), each = logits.size() / texts;
    std::vector<std::size_t> all;
    for (std::size_t text = 0; text < texts; ++text) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(text * each);
      all.push_back(static_cast<std::size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(each)) - first));
    }
    return all;
  }

  const BenchRequest& request_;
  std::vector<std::uint32_t> starts_;
  int context_;
  Runtime runtime_;
  TunedGenerator ours_;
  std::unique_ptr<Peers> peers_;
};

std::string second_run(const std::string& differs) { return differs.empty() ? "the same bits" : "OTHER BITS: " + differs; }

bool check_portable(const BenchModel& model, const BenchRequest& request) {
  if (request.portable_check == 0) return true;
  const CheckResult result = check_against_portable(model, request.batch, request.portable_check, request.options);
  std::printf(
      "%u positions of %d different texts at once against the portable tasks: largest relative error %.2e, must be "
      "below %.0e; a second run gave %s\n",
      request.portable_check, request.batch, result.worst, kMostPortableError, second_run(result.differs).c_str());
  std::printf("portable check: %s\n", result.passed() ? "PASSED" : "FAILED");
  std::fflush(stdout);
  return result.passed();
}

/// The same at real lengths of a context.
bool check_portable_contexts(const BenchModel& model, const BenchRequest& request) {
  const std::vector<std::uint32_t>& starts = request.portable_contexts;
  if (starts.empty()) return true;
  const std::vector<ContextResult> results = check_contexts(model, starts, request.options);
  for (std::size_t i = 0; i < starts.size(); ++i)
    std::printf(
        "%u steps from position %u against the portable tasks: largest relative error %.2e, must be below %.0e; a "
        "second run gave %s\n",
        kStepsOfContext, starts[i], results[i].worst, kMostContextError, second_run(results[i].differs).c_str());
  const bool passed = std::ranges::all_of(results, &ContextResult::passed);
  std::printf("portable check in context: %s\n", passed ? "PASSED" : "FAILED");
  std::fflush(stdout);
  return passed;
}

/// Empty if no file is to be written. Called before measuring, so that a wrong path costs no measurement.
std::filesystem::path results_file(const BenchRequest& request, const measure::Gpu& gpu, bool on_gpu) {
  if (!request.out.empty()) {
    check_results_path(request.out);
    measure::prepare_results(request.out);
    return request.out;
  }
  if (!on_gpu || request.runs == 0) return {};
  if (!std::filesystem::is_directory("apps/llama"))
    throw RequestError("there is no apps/llama here: run from the root of the repository, or name a file with --out");
  return std::filesystem::path("apps/llama/results") / (measure::slug(gpu.name) + ".json");
}

}  // namespace

std::vector<DecodeTimes> measure_decode(const BenchModel& model, const BenchRequest& request) {
  return Bench(model, request).measure();
}

bool run_bench(const BenchModel& model, const BenchRequest& request) {
  check(model.config, request);
  const bool on_gpu = choose_target(request.options.target) == Target::gpu;
  const measure::Gpu gpu = on_gpu ? measure::find_gpu() : measure::Gpu{};
  const std::filesystem::path file = results_file(request, gpu, on_gpu);
  if (!check_portable(model, request) || !check_portable_contexts(model, request)) return false;
  if (!measures(request)) return true;
  Bench bench(model, request);
  bench.write_schedule();
  const std::vector<DecodeTimes> all = bench.measure();
  if (!all.empty()) std::printf("%s", decode_table(model.name, request.batch, all).c_str());
  const std::vector<PromptTimes> prompts = bench.measure_prompts();
  if (!prompts.empty()) std::printf("%s", prompt_table(model.name, prompts).c_str());
  const MixedTimes mixed = bench.measure_mixed();
  std::printf("%s", mixed_table(model.name, mixed).c_str());
  if (!file.empty() && !all.empty()) {
    const measure::Stamp stamp{measure::slug(gpu.name), gpu.driver, measure::today(), std::string(git_commit())};
    write_rows(decode_rows(model.name, request.batch, all, stamp), file);
    write_rows(prompt_rows(model.name, prompts, stamp), file);
    write_rows(mixed_rows(model.name, mixed, stamp), file);
    std::printf("Written to %s\n", file.c_str());
  }
  std::fflush(stdout);
  bench.write_traces();
  return true;
}

}  // namespace llama
