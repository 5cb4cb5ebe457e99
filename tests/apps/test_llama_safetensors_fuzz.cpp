// Damaged safetensors files: whatever the bytes, the reader either throws a ModelError or hands out views
// that lie inside the file and agree with their shapes. Built with AddressSanitizer this also finds any read
// past the end.
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/safetensors.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;

namespace {

const std::string kSound =
    safetensors_file(R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                     R"("y":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
                     R"("z":{"dtype":"I8","shape":[3],"data_offsets":[32,35]}})",
                     std::string(35, 'd'));

bool inside(const TensorView& tensor, std::span<const std::byte> file) {
  const auto elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
  return tensor.bytes.data() >= file.data() && tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size() &&
         static_cast<std::size_t>(elements) * dtype_size(tensor.dtype) == tensor.bytes.size();
}

// True when the file is refused as it should be, or every byte of every tensor can be read.
bool refused_or_sound(const std::string& content) {
  // A heap block of just this size, so that a read past the end leaves it.
  const std::vector<char> file(content.begin(), content.end());
  const auto bytes = std::as_bytes(std::span(file));
  try {
    for (const TensorView& tensor : read_safetensors(bytes, "damaged.safetensors")) {
      if (!inside(tensor, bytes)) return false;
      std::vector<std::byte> copy(tensor.bytes.begin(), tensor.bytes.end());
      if (tensor.dtype == DType::kF32) to_floats(tensor);
    }
  } catch (const ModelError&) {}
  return true;
}

bool refused(const std::string& content) {
  return !model_error_of([&] { read_safetensors(std::as_bytes(std::span(content)), "f"); }).empty();
}

std::string with_digits_changed(std::string file) {
  for (char& c : file) {
    if (c >= '0' && c <= '9' && *rc::gen::inRange(0, 4) == 0) c = *rc::gen::elementOf(std::string("0123456789-.e"));
  }
  return file;
}

}  // namespace

TEST_CASE("the sound file is read") {
  CHECK_FALSE(refused(kSound));
  CHECK(refused_or_sound(kSound));
}

TEST_CASE("every shorter file is refused") {
  for (std::size_t size = 0; size < kSound.size(); ++size) CHECK(refused(kSound.substr(0, size)));
}

TEST_CASE("every single changed byte is refused or harmless") {
  for (std::size_t at = 0; at < kSound.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::string file = kSound;
      file[at] = static_cast<char>(static_cast<unsigned char>(file[at]) ^ change);
      if (!refused_or_sound(file)) FAIL("byte " << at << " changed by " << change);
    }
  }
}

TEST_CASE("many changes at once are refused or harmless") {
  CHECK(rc::check("bytes flipped, cut out and put in", [] {
    std::string file = kSound;
    const int changes = *rc::gen::inRange(1, 12);
    for (int i = 0; i < changes && !file.empty(); ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          file[at] = *rc::gen::arbitrary<char>();
          break;
        case 1:
          file.erase(at, *rc::gen::inRange<std::size_t>(1, 9));
          break;
        default:
          file.insert(at, *rc::gen::arbitrary<std::string>());
      }
    }
    RC_ASSERT(refused_or_sound(file));
  }));
  CHECK(rc::check("numbers of the header changed", [] { RC_ASSERT(refused_or_sound(with_digits_changed(kSound))); }));
}
