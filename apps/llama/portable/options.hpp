// How to start a runtime for the portable decode of random weights.
#pragma once

#include "apps/llama/decode/options.hpp"

namespace llama {

/// As tuned_options(), with float activations and cache of one text.
Options portable_options(const Config& config, int context, Options options = {});

}  // namespace llama
