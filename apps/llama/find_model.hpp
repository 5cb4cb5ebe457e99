#pragma once

#include <filesystem>

namespace flywheel::llama {

/// The model to use when none is named: the environment variable FLYWHEEL_MODEL, a folder `model` beside the
/// program, or the model that comes with the sources. Throws ModelError where none of them is there.
std::filesystem::path find_model();

}  // namespace flywheel::llama
