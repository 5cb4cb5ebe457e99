// Writing text with a model: the whole of it is one submission, and tokens stream out while it runs.
#pragma once

#include <filesystem>
#include <vector>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/portable/graph.hpp"

namespace llama {

// Shared with the compiled decode.

/// The context asked for, or a sensible one for 0. Throws RequestError for one the model was not made for.
int choose_context(const Config& config, int wanted);
/// See Generator::check().
void check_request(const Request& request, const Config& config, int context);
/// The same of several that are served at once: of more than one, the error says of which.
void check_requests(const std::vector<Request>& requests, const Config& config, int context);
void check_ids(const std::vector<std::uint32_t>& ids, const Config& config, int context);
/// Calls `on_token` for what the run streams, until it ends.
std::vector<Outcome> collect_tokens(Run& run, const std::vector<Request>& requests, const Config& config,
                                    std::chrono::steady_clock::time_point begin, const OnTextToken& on_token);

/// A model, loaded into a runtime made by start_portable_runtime(). One thread at a time. The runtime must outlive it.
class Generator {
 public:
  /// `context`: positions to have room for; 0 chooses the model's own length, or 4096 if that is longer.
  /// Throws ModelError for a folder that is no model of a known kind, RequestError for a context the model
  /// was not made for.
  Generator(Runtime& runtime, const std::filesystem::path& folder, int context = 0);

  /// Throws RequestError for a prompt that is empty, has tokens outside the vocabulary or leaves no room for
  /// the text, and for settings that make no sense.
  void check(const Request& request) const { check_request(request, config_, context_); }

  /// Checks the request and calls `on_token` for each token as it arrives. What `on_token` throws cancels the
  /// run.
  Outcome generate(const Request& request, const OnToken& on_token);

  /// The logits after each of the ids, given all ids up to it: one run for each. For tests and for looking
  /// inside.
  std::vector<std::vector<float>> logits(const std::vector<std::uint32_t>& ids);

  const Config& config() const { return config_; }
  int context() const { return context_; }
  std::uint32_t tasks() const { return executable_.size(); }  // of one step

 private:
  Runtime& runtime_;
  Config config_;
  int context_;
  Weights weights_;
  PortableMemory memory_;
  Executable executable_;
  Param<RunSettings> settings_{};
};

/// Options with as much scratch memory as the model's tasks ask for. Throws ModelError if config.json cannot
/// be read.
Options options_for(const std::filesystem::path& folder, int context = 0, Options options = {});

}  // namespace llama
