// How to start a runtime for the tuned decode of a model.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

using namespace flywheel;

/// What is to have room.
struct TunedRoom {
  int context = 0;  // positions
  int texts = 1;    // at once
  int decodes = 1;  // operand streams and caches beside the loaded weights
};

/// Target::automatic made definite: a GPU if there is one, unless the environment variable FLYWHEEL_TARGET says cpu. If it
/// asks for what there is not, the target stays automatic: a runtime that starts with it says so.
Target choose_target(Target wanted);

/// Options::operand_window of who leaves the choice to tuned_options(): what so many texts are fastest with.
inline constexpr std::uint32_t kBestWindow = 0;

/// `options` with a definite target, scratch memory for the tuned tasks, and a heap that need not grow: the weights as
/// loaded, and streams, caches and activations of `room`. Any window but kBestWindow stays.
Options tuned_options(const Config& config, const TunedRoom& room, Options options = {});
/// The same for the portable tasks on random weights, with float activations and cache.
Options portable_options(const Config& config, int context, Options options = {});

}  // namespace llama
