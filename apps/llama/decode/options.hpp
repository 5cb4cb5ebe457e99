// What the options of both decodes' runtimes are made of.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

using namespace flywheel;

/// Target::automatic made definite: a GPU if there is one, unless the environment variable FLYWHEEL_TARGET says cpu. If it
/// asks for what there is not, the target stays automatic: a runtime that starts with it says so.
Target choose_target(Target wanted);

/// Options::tuning.operand_window of who leaves the choice to tuned_options(): what so many texts are fastest with.
inline constexpr std::uint32_t kBestWindow = 0;

/// Of the weights as loaded, in bf16.
std::size_t loaded_bytes(const Config& config);
/// Of what a step of one text works in, caches aside.
std::size_t activation_bytes(const Config& config, int context);
/// With room for schedules, tables and what allocation rounds up.
std::size_t with_slack(std::size_t bytes);

}  // namespace llama
