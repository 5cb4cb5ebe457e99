// What a person can ask the program `llama` for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/llama/bench/bench.hpp"
#include "apps/llama/bench/soak.hpp"
#include "apps/llama/cli/session.hpp"
#include "apps/llama/decode/request.hpp"

namespace llama {

struct TextRequest {
  std::vector<std::string> prompts;   // of as many texts; of none and no file: "ROMEO:" and a line break
  std::filesystem::path prompt_file;  // if any, further prompts: each line is one
  int places = 0;                     // texts that --tuned writes at once: 1, 2, 4 or 8; 0: all, at most 8
  std::uint32_t tokens = 0;           // 0: 256, or as many as the context has room for if that is less
  Sampling sampling;                  // of the first text; each after it has the next seed
  bool stop_at_end = true;
  bool json = false;  // one JSON object in the end in place of the text as it comes
};

/// Writes a text to stdout, or several: the first as it comes, and each other when it has ended. One line on stderr says how
/// long that took.
void generate_text(const Setup& setup, TextRequest request);

/// Prints the five likeliest tokens after each of the ids.
void print_logits(const Setup& setup, const std::vector<std::uint32_t>& ids);

/// Prints what the model is, and the size of its decode step on this machine.
void print_info(const Setup& setup);

/// What to measure: a published shape with random weights, or a model folder.
struct Measured {
  std::string shape;
  std::filesystem::path model;
};

/// False if what was measured is wrong.
bool bench_decode(const Measured& what, const BenchRequest& request);
/// Prints how it goes. False if a run ended otherwise than the first.
bool soak_decode(const Measured& what, const SoakRequest& request, const Options& options);

}  // namespace llama
