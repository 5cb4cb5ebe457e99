#include <algorithm>
#include <cstring>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/json_node.hpp"
#include "apps/llama/checkpoint/safetensors.hpp"

namespace llama {
namespace {

constexpr std::size_t kSizeBytes = 8;                  // the header's size, little-endian, at the front
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;
constexpr const char* kFetchAgain = "copy or download the file again: it is damaged or its transfer broke off";
constexpr const char* kSaveAgain = "save the model again with a current release of the safetensors library";

std::string_view header_text(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  if (bytes.size() < kSizeBytes) {
    throw ModelError(file, "is " + std::to_string(bytes.size()) + " bytes long: too short for a header", kFetchAgain);
  }
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), kSizeBytes);
  if (size > kLongestHeader || size > bytes.size() - kSizeBytes) {
    throw ModelError(
        file, "says that its header has " + std::to_string(size) + " bytes, but the file has " + std::to_string(bytes.size()),
        std::string(kFetchAgain) + ", or it is no safetensors file");
  }
  return {reinterpret_cast<const char*>(bytes.data()) + kSizeBytes, static_cast<std::size_t>(size)};
}

DType read_dtype(const JsonNode& node) {
  if (const auto dtype = dtype_of(node.text())) return *dtype;
  node.fail("is \"" + node.text() + "\", a type this reader does not know",
            "use a model whose weights are F32, F16 or BF16 (not an FP8 or otherwise quantised one)");
}

// Bytes that a tensor of this shape takes; false when they overflow 64 bits.
bool bytes_of_shape(const TensorView& tensor, std::uint64_t& bytes) {
  bytes = dtype_size(tensor.dtype);
  for (const std::int64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dimension), &bytes)) return false;
  }
  return true;
}

std::pair<std::size_t, std::size_t> read_offsets(const JsonNode& node, std::size_t data_size) {
  std::vector<std::int64_t> ends;
  node.each_element([&](const JsonNode& end) { ends.push_back(end.integer(0, INT64_MAX)); });
  if (ends.size() != 2 || ends[0] > ends[1]) node.fail("should be two offsets, the lower one first", kFetchAgain);
  if (static_cast<std::uint64_t>(ends[1]) > data_size) {
    node.fail(
        "ends at byte " + std::to_string(ends[1]) + ", but the file holds only " + std::to_string(data_size) + " bytes of data",
        kFetchAgain);
  }
  return {static_cast<std::size_t>(ends[0]), static_cast<std::size_t>(ends[1])};
}

TensorView read_tensor(const std::string& name, const JsonNode& node, std::span<const std::byte> data) {
  TensorView tensor;
  tensor.name = name;
  tensor.dtype = read_dtype(node.at("dtype"));
  node.at("shape").each_element([&](const JsonNode& n) { tensor.shape.push_back(n.integer(0, kLargestDimension)); });
  const auto [begin, end] = read_offsets(node.at("data_offsets"), data.size());
  tensor.bytes = data.subspan(begin, end - begin);
  std::uint64_t wanted = 0;
  if (!bytes_of_shape(tensor, wanted) || wanted != tensor.bytes.size()) {
    node.fail("has " + std::to_string(tensor.bytes.size()) + " bytes, which does not fit " +
                  std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape),
              kFetchAgain);
  }
  // The mapping begins on a page, so the address tells the alignment within the file.
  if (reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % dtype_size(tensor.dtype) != 0) {
    node.fail("is not aligned to its " + std::to_string(dtype_size(tensor.dtype)) + "-byte elements", kSaveAgain);
  }
  return tensor;
}

// The format wants every byte of the data to belong to exactly one tensor.
void check_coverage(std::vector<TensorView>& tensors, std::span<const std::byte> data, const std::filesystem::path& file) {
  std::ranges::sort(tensors, {}, [](const TensorView& t) { return std::pair(t.bytes.data(), t.bytes.size()); });
  const std::byte* next = data.data();
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.data() < next) {
      throw ModelError(file, "the tensor \"" + tensor.name + "\" overlaps the one before it", kFetchAgain);
    }
    if (tensor.bytes.data() > next) {
      throw ModelError(file, "there is a gap before the tensor \"" + tensor.name + "\"", kFetchAgain);
    }
    next = tensor.bytes.data() + tensor.bytes.size();
  }
  if (next != data.data() + data.size()) {
    throw ModelError(file, "goes on after its last tensor", kFetchAgain);
  }
}

}  // namespace

std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  const std::string_view header = header_text(bytes, file);
  const std::span<const std::byte> data = bytes.subspan(kSizeBytes + header.size());
  std::vector<TensorView> tensors;
  JsonNode::parse(header, file).each_member([&](const std::string& name, const JsonNode& node) {
    if (name != "__metadata__") tensors.push_back(read_tensor(name, node, data));
  });
  check_coverage(tensors, data, file);
  return tensors;
}

}  // namespace llama
