// Which weights the tuned decode's stream keeps: all 65,536 codes of bf16, and what a model is told that has others.
#include <bit>
#include <cmath>

#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/start.hpp"
#include "apps/llama/tuned/tile.cuh"
#include "catch.hpp"
#include "llama_families_support.hpp"

namespace llama {
namespace {

float value_of(std::uint32_t bits) { return to_float(Bf16{static_cast<std::uint16_t>(bits)}); }
float streamed(std::uint32_t bits) { return from_half(half_of_weight(bits)) / kWeightUnits; }

TEST_CASE("tuned: of all bf16 codes, which are exact, which are rounded and which are refused") {
  int exact = 0, rounded = 0, refused = 0, finite_refused = 0, wrong = 0;
  float worst = 0, most = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float weight = value_of(bits), size = std::fabs(weight);
    CHECK(half_of_weight(bits) % 8 == 0);  // these bits are not brought
    if (!fits_stream(bits)) {
      ++refused;
      finite_refused += std::isfinite(weight);
      wrong += std::isfinite(streamed(bits));
      continue;
    }
    most = std::max(most, size);
    wrong += std::signbit(streamed(bits)) != std::signbit(weight);
    if (streamed(bits) == weight) {
      ++exact;
      continue;
    }
    ++rounded;
    worst = std::max(worst, std::fabs(streamed(bits) - weight));
    wrong += size >= kLeastExactWeight;
  }
  CHECK(wrong == 0);
  CHECK(exact == 7936);
  CHECK(rounded == 27648);
  CHECK(worst == 0x1p-26f);
  CHECK(most == kMostWeight);
  CHECK(kMostWeight == 4080);
  CHECK(kLeastExactWeight == 0x1p-18f);
  CHECK(finite_refused == 29696);
  CHECK(refused == 29696 + 256);
}

TEST_CASE("tuned: about one weight in 10,000 of the shipped model is rounded") {
  const SafeTensors file = SafeTensors::open(kModelFolder);
  double all = 0, rounded = 0;
  for (const std::string& name : file.names()) {
    const TensorView& tensor = file.at(name);
    if (tensor.dtype != DType::kBF16 || tensor.shape.size() != 2) continue;
    std::vector<std::uint16_t> weights(tensor.count());
    std::memcpy(weights.data(), tensor.bytes.data(), tensor.bytes.size());
    all += static_cast<double>(weights.size());
    for (const std::uint16_t bits : weights) rounded += streamed(bits) != value_of(bits);
  }
  CHECK(all > 3e6);
  CHECK(rounded / all > 0.5e-4);
  CHECK(rounded / all < 2e-4);
}

/// A copy of a family's model with one weight of one tensor changed.
class Altered {
 public:
  Altered(const std::string& family, const std::string& tensor, std::size_t row, std::size_t column, std::uint16_t bits) {
    std::filesystem::copy(family_folder(family), folder_.path(), std::filesystem::copy_options::recursive);
    const SafeTensors file = SafeTensors::open(family_folder(family));
    const TensorView& view = file.at(tensor);
    const std::byte* begin = view.bytes.data() + 2 * (row * static_cast<std::size_t>(view.shape[1]) + column);
    std::fstream stream(folder_.path() / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t header = 0;
    stream.read(reinterpret_cast<char*>(&header), sizeof header);
    stream.seekp(static_cast<std::streamoff>(sizeof header + header) + (begin - first_byte(file)));
    stream.write(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  static const std::byte* first_byte(const SafeTensors& file) {
    const std::byte* first = nullptr;
    for (const std::string& name : file.names()) {
      const std::byte* at = file.at(name).bytes.data();
      first = !first || at < first ? at : first;
    }
    return first;
  }
  TempFolder folder_;
};

std::string error_with(const char* family, const char* tensor, std::uint16_t bits) {
  const Altered altered(family, tensor, 3, 5, bits);
  const Config config = read_config(altered.folder());
  Runtime runtime = start_tuned_runtime(
      {.target = Target::cpu, .workers = 2, .scratch_bytes = tuned_scratch_bytes(config, false, kFamilyContext)});
  return request_error_of([&] { TunedGenerator(runtime, altered.folder(), kFamilyContext); });
}

constexpr const char* kFamily = "qwen3_heads64";

TEST_CASE("tuned: a weight that the stream cannot keep is refused with its place, its value and the way out") {
  for (const char* tensor : {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.v_proj.weight",
                             "model.layers.1.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                             "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"}) {
    const std::string error = error_with(kFamily, tensor, 0xc580);
    INFO(error);
    CHECK(mentions(error, {tensor, "row 3, column 5", "-4096", "4080", "without --tuned"}));
  }
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x7fc0), {"up_proj", "nan"}));
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0xffc0), {"up_proj", "nan"}));
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x7f80), {"up_proj", "inf"}));
  CHECK(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x457f).empty());  // 4080
}

TEST_CASE("tuned: a weight of the output matrix is refused, and one of an embedding that is only looked up is not") {
  REQUIRE_FALSE(read_config(family_folder(kFamily)).tie_word_embeddings);
  CHECK(error_with(kFamily, "model.embed_tokens.weight", 0x4580).empty());
  CHECK(mentions(error_with(kFamily, "lm_head.weight", 0x4580), {"lm_head.weight", "4096"}));
  REQUIRE(read_config(family_folder("qwen3")).tie_word_embeddings);
  CHECK(mentions(error_with("qwen3", "model.embed_tokens.weight", 0x4580), {"model.embed_tokens.weight", "4096"}));
}

TEST_CASE("portable: a large weight is a weight like others") {
  const Altered altered(kFamily, "model.layers.0.mlp.up_proj.weight", 3, 5, 0x4580);
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, altered.folder(), kFamilyContext);
  CHECK(generator.logits({1, 2}).size() == 2);
}

}  // namespace
}  // namespace llama
