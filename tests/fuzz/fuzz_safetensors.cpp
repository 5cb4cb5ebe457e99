// A safetensors file. An input that begins with 'r' is the file behind it, byte for byte. Any other is a JSON header and,
// behind a zero byte, the data: the harness puts the header's size in front, which a change of the header would spoil.
#include <cstring>
#include <functional>
#include <numeric>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/near_names.hpp"
#include "apps/llama/checkpoint/safetensors.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

namespace {

/// In a heap block of just the file's size. Spaces align the data, as writers of the format do.
std::vector<std::byte> file_of(std::string_view input) {
  if (input.starts_with('r')) {
    const auto raw = std::as_bytes(std::span(input.substr(1)));
    return {raw.begin(), raw.end()};
  }
  const auto [header, data] = flywheel::fuzz::cut_at(input, '\0');
  const std::uint64_t size = (header.size() + 7) / 8 * 8;
  std::vector<std::byte> file(sizeof size + size + data.size(), std::byte{' '});
  std::memcpy(file.data(), &size, sizeof size);
  if (!header.empty()) std::memcpy(file.data() + sizeof size, header.data(), header.size());
  if (!data.empty()) std::memcpy(file.data() + sizeof size + size, data.data(), data.size());
  return file;
}

bool is_weight(const TensorView& tensor) {
  return tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

void check_tensor(const TensorView& tensor, std::span<const std::byte> file) {
  expect(tensor.bytes.data() >= file.data() && tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size(),
         "a tensor lies inside its file");
  const auto count = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::uint64_t{1}, std::multiplies<>());
  expect(count == tensor.count(), "shape and bytes agree");
  expect(!dtype_name(tensor.dtype).empty() && !shape_text(tensor.shape).empty(), "a tensor can be described");
  if (is_weight(tensor)) {
    expect(to_floats(tensor).size() == count, "weights become floats");
  } else {
    const std::vector<std::byte> copy(tensor.bytes.begin(), tensor.bytes.end());
    expect(copy.size() == tensor.bytes.size(), "all bytes can be read");
  }
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  const std::vector<std::byte> file = file_of(input);
  try {
    std::vector<std::string> names;
    for (const TensorView& tensor : read_safetensors(file, "model.safetensors")) {
      check_tensor(tensor, file);
      names.push_back(tensor.name);
    }
    near_names("model.norm.weight", names);
  } catch (const ModelError&) {}
}
