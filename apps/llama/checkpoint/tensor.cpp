#include "apps/llama/checkpoint/tensor.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace llama {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and read in place");

struct DTypeRow {
  std::string_view name;
  DType dtype;
  std::size_t size;
};

constexpr std::array<DTypeRow, 10> kDTypes = {{{"F32", DType::kF32, 4},
                                               {"F16", DType::kF16, 2},
                                               {"BF16", DType::kBF16, 2},
                                               {"F64", DType::kF64, 8},
                                               {"I64", DType::kI64, 8},
                                               {"I32", DType::kI32, 4},
                                               {"I16", DType::kI16, 2},
                                               {"I8", DType::kI8, 1},
                                               {"U8", DType::kU8, 1},
                                               {"BOOL", DType::kBool, 1}}};

const DTypeRow& row_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

template <class Convert>
void convert_halves(const TensorView& tensor, std::span<float> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, tensor.bytes.data() + 2 * i, 2);
    out[i] = convert(bits);
  }
}

}  // namespace

std::optional<DType> dtype_of(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }
std::size_t dtype_size(DType dtype) { return row_of(dtype).size; }

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// IEEE binary16: the exponent moves from bias 15 to bias 127. Subnormals are the one case in which that is no
// shift; multiplying by 2^-24 is exact for all of their 1023 values.
float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t widened = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

void copy_floats(const TensorView& tensor, std::span<float> out) {
  if (out.size() != tensor.count()) {
    throw std::invalid_argument("copy_floats: \"" + tensor.name + "\" has " + std::to_string(tensor.count()) +
                                " elements, but there are " + std::to_string(out.size()) + " places for them");
  }
  switch (tensor.dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return;
    case DType::kF16:
      return convert_halves(tensor, out, f16_to_float);
    case DType::kBF16:
      return convert_halves(tensor, out, bf16_to_float);
    default:
      throw std::invalid_argument("copy_floats: \"" + tensor.name + "\" is " + std::string(dtype_name(tensor.dtype)) +
                                  ", not F32, F16 or BF16");
  }
}

std::vector<float> to_floats(const TensorView& tensor) {
  std::vector<float> values(tensor.count());
  copy_floats(tensor, values);
  return values;
}

}  // namespace llama
