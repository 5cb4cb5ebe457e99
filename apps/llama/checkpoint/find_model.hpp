#pragma once

#include <filesystem>

namespace llama {

/// `named`, if it is not empty. The model to use when none is named: the environment variable FLYWHEEL_MODEL, a folder
/// `model` beside the program, or the model that comes with the sources. Throws ModelError where none of them is there, and
/// for a file in place of a folder.
std::filesystem::path find_model(const std::filesystem::path& named = {});

}  // namespace llama
