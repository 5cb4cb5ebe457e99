#include "apps/llama/checkpoint/find_model.hpp"

#include <cstdlib>
#include <system_error>

#include "apps/llama/checkpoint/error.hpp"

namespace llama {
namespace fs = std::filesystem;

namespace {

fs::path checked(const fs::path& named) {
  std::error_code none;
  if (fs::is_regular_file(named, none)) throw ModelError(named, "is a file", "name the folder that the model's files are in");
  return named;
}

}  // namespace

fs::path find_model(const fs::path& named) {
  if (!named.empty()) return checked(named);
  const char* wish = std::getenv("FLYWHEEL_MODEL");
  if (wish && *wish) return checked(wish);
  const fs::path shipped = fs::path(FLYWHEEL_SOURCE_DIR) / "apps" / "llama" / "model";
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  for (const fs::path& folder : {program.parent_path() / "model", shipped})
    if (fs::exists(folder / "config.json", none)) return folder;
  throw ModelError(shipped, "there is no model here", "name a model's folder with --model or FLYWHEEL_MODEL");
}

}  // namespace llama
