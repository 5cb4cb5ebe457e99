#include "apps/llama/checkpoint/safetensors.hpp"

#include <algorithm>
#include <utility>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/near_names.hpp"
#include "apps/llama/checkpoint/shard_index.hpp"

namespace llama {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

std::filesystem::path weights_in(const std::filesystem::path& folder) {
  for (const char* name : {kSingleFile, kIndexFile}) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  throw ModelError(folder, std::string("holds neither ") + kSingleFile + " nor " + kIndexFile,
                   "name the folder of a Hugging Face model saved as safetensors");
}

}  // namespace

SafeTensors SafeTensors::open(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw ModelError(path, "does not exist", "name a model's folder or its .safetensors file");
  }
  SafeTensors model(std::filesystem::is_directory(path) ? weights_in(path) : path);
  if (model.path_.extension() == ".json") {
    model.add_shards(model.path_);
  } else {
    model.add_file(model.path_);
  }
  return model;
}

void SafeTensors::add_file(const std::filesystem::path& file) {
  files_.emplace_back(file);
  for (TensorView& tensor : read_safetensors(files_.back().bytes(), file)) {
    const std::string name = tensor.name;
    if (!tensors_.emplace(name, std::move(tensor)).second) {
      throw ModelError(file, "has the tensor " + in_quotes(name) + ", which another shard has too", kShardRemedy);
    }
  }
}

void SafeTensors::add_shards(const std::filesystem::path& file) {
  const ShardIndex index = read_shard_index(read_text(file, kShardRemedy), file);
  for (const std::string& shard : index.shards) {
    if (!std::filesystem::is_regular_file(file.parent_path() / shard)) {
      throw ModelError(file, "lists the shard " + in_quotes(shard) + ", which is not there", kShardRemedy);
    }
    add_file(file.parent_path() / shard);
  }
  for (const auto& [name, shard] : index.shard_of) {
    if (find(name) == nullptr) {
      throw ModelError(file.parent_path() / shard, "lacks the tensor " + in_quotes(name) + " that the index promises",
                       kShardRemedy);
    }
  }
}

const TensorView* SafeTensors::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& SafeTensors::at(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  throw ModelError(
      path_, "has no tensor " + in_quotes(name) + " (nearest: " + near_names(name, names()) + ")",
      "check that config.json belongs to these weights and that it has the layout of a Llama, Mistral, Qwen2 or Qwen3");
}

const TensorView& SafeTensors::weight(std::string_view name, std::initializer_list<std::int64_t> shape) const {
  const TensorView& tensor = at(name);
  if (!std::ranges::equal(tensor.shape, shape)) {
    throw ModelError(path_,
                     in_quotes(name) + " has shape " + shape_text(tensor.shape) + ", but config.json asks for " +
                         shape_text({shape.begin(), shape.size()}),
                     "use the config.json that came with these weights");
  }
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) {
    throw ModelError(path_, in_quotes(name) + " is of type " + std::string(dtype_name(tensor.dtype)),
                     "use the unquantised model: its weights are F32, F16 or BF16");
  }
  return tensor;
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

std::size_t SafeTensors::bytes() const {
  std::size_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.bytes.size();
  return total;
}

}  // namespace llama
