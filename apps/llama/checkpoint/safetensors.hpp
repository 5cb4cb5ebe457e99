#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/mapped_file.hpp"
#include "apps/llama/checkpoint/tensor.hpp"

namespace llama {

// The tensors of one file in the safetensors format (huggingface/safetensors, "Format"): eight bytes of
// header size, a JSON header of names, types, shapes and offsets, then the data. `file` is for messages.
// Nothing of a bad file gets through: throws ModelError when the file is cut short or padded, the header does
// not fit or is no such header, a type is unknown, a shape and its bytes disagree, or tensors overlap, leave
// gaps or are misaligned.
std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::filesystem::path& file);

// The weights of a model: one safetensors file, or several under an index, mapped and looked up by name.
class SafeTensors {
 public:
  // `path` is a .safetensors file, a .safetensors.index.json, or a folder with model.safetensors or
  // model.safetensors.index.json in it. Throws ModelError as above, and when there is no such file or when a
  // shard of the index is missing or lacks a tensor that the index promises.
  static SafeTensors open(const std::filesystem::path& path);

  const TensorView* find(std::string_view name) const;  // nullptr when absent
  const TensorView& at(std::string_view name) const;    // throws ModelError with the nearest names

  // As at(), and throws ModelError unless the tensor is F32, F16 or BF16 and has this shape.
  const TensorView& weight(std::string_view name, std::initializer_list<std::int64_t> shape) const;

  std::vector<std::string> names() const;  // sorted
  std::size_t bytes() const;               // of all tensors together
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit SafeTensors(std::filesystem::path path) : path_(std::move(path)) {}
  void add_file(const std::filesystem::path& file);
  void add_shards(const std::filesystem::path& file);

  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace llama
