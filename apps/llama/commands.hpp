// What a person can ask the program `llama` for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/llama/generate.hpp"

namespace flywheel::llama {

/// Where the model lies and where it runs.
struct Setup {
  std::filesystem::path model;  // empty: find_model()
  Target target = Target::automatic;
  int context = 0;  // 0: see Generator
};

struct TextRequest {
  std::string prompt = "ROMEO:\n";
  std::uint32_t tokens = 0;  // 0: 256, or as many as the context has room for if that is less
  Sampling sampling;
  bool stop_at_end = true;
  bool json = false;  // one JSON object in the end in place of the text as it comes
};

/// Writes a text to stdout. One line on stderr says how long that took.
void generate_text(const Setup& setup, const TextRequest& request);

/// Prints the five likeliest tokens after each of the ids.
void print_logits(const Setup& setup, const std::vector<std::uint32_t>& ids);

/// Prints what the model is, and the size of its decode step on this machine.
void print_info(const Setup& setup);

}  // namespace flywheel::llama
