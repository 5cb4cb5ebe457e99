// Replaces gpu_engine.cpp and gpu_probe.cpp in a library that is built without CUDA.
#include "engine.hpp"

namespace flywheel::detail {

std::unique_ptr<Engine> make_gpu_engine(const KernelEntry&, const Options&, std::string& why) {
  why = "the library was built without CUDA (configure with FLYWHEEL_CUDA=ON and an nvcc)";
  return nullptr;
}

}  // namespace flywheel::detail
