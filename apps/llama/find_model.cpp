#include "apps/llama/find_model.hpp"

#include <cstdlib>
#include <system_error>

#include "apps/llama/files/error.hpp"

namespace flywheel::llama {
namespace fs = std::filesystem;

fs::path find_model() {
  if (const char* named = std::getenv("FLYWHEEL_MODEL")) return named;
  const fs::path shipped = fs::path(FLYWHEEL_SOURCE_DIR) / "apps" / "llama" / "model";
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  for (const fs::path& folder : {program.parent_path() / "model", shipped})
    if (fs::exists(folder / "config.json", none)) return folder;
  throw ModelError(shipped, "there is no model here", "name a model's folder with --model or FLYWHEEL_MODEL");
}

}  // namespace flywheel::llama
