#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llama {

// The element types that a safetensors file can be laid out with here. Weights come as the first three; the
// others appear in files of indices, masks and golden values.
enum class DType : std::uint8_t { kF32, kF16, kBF16, kF64, kI64, kI32, kI16, kI8, kU8, kBool };

std::optional<DType> dtype_of(std::string_view name);  // by its name in the file: "BF16"
std::string_view dtype_name(DType dtype);
std::size_t dtype_size(DType dtype);  // bytes an element

// A tensor inside a mapped file: row-major, little-endian, aligned to its element. The bytes live as long as
// the object it was looked up in.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::size_t count() const { return bytes.size() / dtype_size(dtype); }  // elements
};

std::string shape_text(std::span<const std::int64_t> shape);  // "[256, 1024]"

float bf16_to_float(std::uint16_t bits);
float f16_to_float(std::uint16_t bits);

// All elements as float32. `out` must have tensor.count() places. Throws std::invalid_argument when it has
// not, or when the tensor is none of F32, F16 and BF16 (SafeTensors::weight gives out no others).
void copy_floats(const TensorView& tensor, std::span<float> out);
std::vector<float> to_floats(const TensorView& tensor);

}  // namespace llama
