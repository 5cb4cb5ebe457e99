// How long prompts take: read in chunks, and one token at a time.
#pragma once

#include "apps/llama/bench/bench_model.hpp"
#include "apps/llama/bench/rows.hpp"
#include "apps/llama/tuned/generator.hpp"

namespace llama {

/// Of prompts of one length. A sample is one round's, in ms.
struct PromptTimes {
  std::uint32_t tokens = 0;
  Samples chunks;          // from the request to its first token
  Samples token_by_token;  // as many steps of the decode
};

/// Rounds of prompts of each length, after one round to warm up.
std::vector<PromptTimes> measure_prompts(TunedGenerator& generator, const std::vector<std::uint32_t>& lengths, int runs);
/// Reads a prompt of so many tokens and leaves the trace of the run that ends it.
void trace_prompt(TunedGenerator& generator, std::uint32_t length, Trace& trace);

/// prefill.<model>.p<tokens>, medians in ms, beside the time token by token.
std::vector<Row> prompt_rows(const std::string& model, const std::vector<PromptTimes>& all, const measure::Stamp& stamp);
/// A line for each length.
std::string prompt_table(const std::string& model, const std::vector<PromptTimes>& all);

}  // namespace llama
