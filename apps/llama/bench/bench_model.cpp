#include "apps/llama/bench/bench_model.hpp"

#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/checkpoint/find_model.hpp"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/decode/request.hpp"

namespace llama {

Weights BenchModel::weights(Runtime& runtime) const {
  return folder.empty() ? random_weights(runtime, config, seed) : load_weights(runtime, config, folder);
}

BenchModel find_bench_model(const std::string& shape, const std::filesystem::path& folder) {
  if (shape.empty() == folder.empty())
    throw RequestError("which model? Give --shape with a published model's name, or --model with a folder");
  if (!folder.empty())
    return {std::filesystem::weakly_canonical(folder).filename().string(), read_config(find_model(folder)), folder};
  if (const Config* config = find_shape(shape)) return {shape, *config};
  if (shape.ends_with(".json")) return {std::filesystem::path(shape).stem().string(), read_config(shape)};
  std::string names;
  for (const std::string_view name : shape_names()) names += (names.empty() ? "" : ", ") + std::string(name);
  throw RequestError("the shape '" + shape + "' is unknown: choose among " + names +
                     ", or give the sizes in a config.json (FILE.json)");
}

}  // namespace llama
