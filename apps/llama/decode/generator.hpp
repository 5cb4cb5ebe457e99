// Writing texts with a model: steps loop on the device, and tokens stream out while they do.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/decode/tally.hpp"

namespace llama {

using namespace flywheel;

/// A model, loaded into a runtime, that writes with one of the two decodes: PortableGenerator or TunedGenerator. One thread at
/// a time. The runtime must outlive it.
class Generator {
 public:
  virtual ~Generator() = default;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Throws RequestError as check_requests() does.
  void check(const std::vector<Request>& requests) const { check_requests(requests, config_, context_); }
  /// Writes a text for each request: each from its own prompt, as its own seed has it, to its own end. Up to sequences() texts
  /// are written at once; others wait for the place of one that ends. A token comes as soon as it is chosen. What `on_token`
  /// and `on_end` throw cancels all. Throws RequestError as check() does, and for logits that are no numbers.
  std::vector<Outcome> generate(const std::vector<Request>& requests, const OnTextToken& on_token,
                                const OnTextEnd& on_end = {});
  /// The same of one.
  Outcome generate(const Request& request, const OnToken& on_token);

  /// The logits after each of a text's ids, given all ids up to it, of up to sequences() texts at once: [text][id]. One run for
  /// each position. Throws RequestError as generate() does. `after_step`: called after each step of all texts, if it is there.
  std::vector<std::vector<std::vector<float>>> logits_of(const std::vector<std::vector<std::uint32_t>>& texts,
                                                         const std::function<void()>& after_step = {});
  std::vector<std::vector<float>> logits(const std::vector<std::uint32_t>& ids) { return logits_of({ids}).front(); }
  /// One step of as many texts, whatever the caches hold: the logits of all sequences, [sequences][vocabulary].
  std::vector<float> logits_from(const std::vector<StepState>& states);
  /// Of all sequences, after the last step.
  virtual std::vector<float> last_logits() const = 0;

  const Config& config() const { return config_; }
  int context() const { return context_; }
  virtual int sequences() const = 0;        // texts at once, at most
  virtual std::uint32_t tasks() const = 0;  // of one step

 protected:
  Generator(Runtime& runtime, Config config, int context) : runtime_(runtime), config_(std::move(config)), context_(context) {}

  Runtime& runtime() const { return runtime_; }
  /// Writes the texts, until all have ended, and tells `tally` of their tokens and its steps.
  virtual void write_texts(const std::vector<Request>& requests, Tally& tally) = 0;
  virtual Run submit_step(const std::vector<StepState>& states) = 0;
  /// A task has failed: what it left may be no numbers.
  virtual void on_failed_task() {}
  /// use(run), and on_failed_task() where that is why it throws.
  void watch(Run run, const std::function<void(Run&)>& use);
  /// Calls `on_token` for what the run streams, until it ends. Gives the steps it took. What `on_token` throws cancels the run.
  std::uint32_t follow(const Run& run, const std::function<void(const WrittenToken&)>& on_token);

  /// Throws RequestError for more texts than sequences().
  void check_count(std::size_t texts) const;

 private:
  Runtime& runtime_;
  Config config_;
  int context_;
};

}  // namespace llama
