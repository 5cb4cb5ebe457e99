// All 65,536 codes of bf16 as the tuned decode has them: exactly, or refused by name.
#include <bit>
#include <cmath>
#include <random>

#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/start.hpp"
#include "apps/llama/tuned/streamed_weights.hpp"
#include "catch.hpp"
#include "llama_families_support.hpp"
#include "support/fresh_seed.hpp"

namespace llama {
namespace {

float value_of(std::uint32_t bits) { return to_float(Bf16{static_cast<std::uint16_t>(bits)}); }
float streamed(std::uint32_t bits) { return from_half(half_of_weight(bits)) / kWeightUnits; }

TEST_CASE("tuned: all bf16 codes that are finite come back bit for bit, as a half and its rest") {
  int plain = 0, with_rest = 0, wrong = 0;
  float worst = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float weight = value_of(bits), rest = rest_of_weight(bits);
    CHECK(half_of_weight(bits) % 8 == 0);  // these bits are not brought
    CHECK(std::isfinite(streamed(bits)));
    if (!std::isfinite(weight)) continue;
    wrong += std::signbit(streamed(bits)) != std::signbit(weight);
    wrong += std::bit_cast<std::uint32_t>(weight == 0 ? streamed(bits) : streamed(bits) + rest) != bits << 16;
    if (rest == 0) {
      ++plain;
      continue;
    }
    ++with_rest;
    if (fits_half(bits)) worst = std::max(worst, std::fabs(rest));
    wrong += std::fabs(weight) >= kLeastExactWeight && std::fabs(weight) <= kMostExactWeight;
  }
  CHECK(wrong == 0);
  CHECK(plain == 7936);
  CHECK(with_rest == 65536 - 7936 - 256);
  CHECK(worst == 0x1p-34f);
  CHECK(kMostExactWeight == 15.9375f);
  CHECK(kLeastExactWeight == 0x1p-26f);
}

TEST_CASE("tuned: a list of patches has those weights that have a rest, and no others, wherever they lie") {
  std::mt19937 draw(static_cast<std::mt19937::result_type>(flywheel::testing::fresh_seed()));
  for (const int columns : {8, 64, 72, 1000, 4096}) {
    PatchList list;
    std::vector<Bf16> all;
    const int rows = 9;
    for (int row = 0; row < rows; ++row) {
      std::vector<Bf16> weights(static_cast<std::size_t>(columns));
      for (Bf16& weight : weights)
        weight.bits = static_cast<std::uint16_t>(row % 3 == 0 || draw() % 64 == 0 ? draw() % 0x7f80 : 0x3c00 + draw() % 0x400);
      if (row == 4) std::ranges::fill(weights, Bf16{0});
      list.add_row(weights.data(), columns);
      all.insert(all.end(), weights.begin(), weights.end());
    }
    REQUIRE(list.first.size() == static_cast<std::size_t>(rows) + 1);
    std::size_t at = 0;
    for (int row = 0; row < rows; ++row) {
      REQUIRE(list.first[static_cast<std::size_t>(row)] == at);
      for (int column = 0; column < columns; ++column) {
        const std::uint32_t bits = all[static_cast<std::size_t>(row * columns + column)].bits;
        if (streamed(bits) == value_of(bits)) continue;
        REQUIRE(at < list.patches.size());
        CHECK(list.patches[at].row == row);
        CHECK(list.patches[at].column == column);
        CHECK(streamed(bits) + list.patches[at].rest == value_of(bits));
        ++at;
      }
    }
    CHECK(list.first.back() == at);
    CHECK(list.patches.size() == at);
  }
}

TEST_CASE("tuned: next to none of the shipped model's weights has a patch") {
  const SafeTensors file = SafeTensors::open(kModelFolder);
  double all = 0, patches = 0;
  for (const std::string& name : file.names()) {
    const TensorView& tensor = file.at(name);
    if (tensor.dtype != DType::kBF16 || tensor.shape.size() != 2) continue;
    std::vector<Bf16> weights(tensor.count());
    std::memcpy(weights.data(), tensor.bytes.data(), tensor.bytes.size());
    all += static_cast<double>(weights.size());
    PatchList list;
    list.add_row(weights.data(), static_cast<int>(weights.size()));
    patches += static_cast<double>(list.patches.size());
  }
  CHECK(all > 3e6);
  CHECK(patches / all < 2e-6);
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

TEST_CASE("tuned: a weight that is no finite number is refused with its place, its value and the way out") {
  for (const char* tensor : {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.v_proj.weight",
                             "model.layers.1.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                             "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"}) {
    const std::string error = error_with(kFamily, tensor, 0xff80);
    INFO(error);
    CHECK(mentions(error, {tensor, "row 3, column 5", "-inf", "no finite number", "without --tuned"}));
    CHECK(error_with(kFamily, tensor, 0xc580).empty());  // -4096, which has no half
  }
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x7fc0), {"up_proj", "nan"}));
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0xffc0), {"up_proj", "nan"}));
  CHECK(mentions(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x7f80), {"up_proj", "inf"}));
  CHECK(error_with(kFamily, "model.layers.0.mlp.up_proj.weight", 0x7f7f).empty());  // the largest
}

TEST_CASE("tuned: a weight of the output matrix is refused, and one of an embedding that is only looked up is not") {
  REQUIRE_FALSE(read_config(family_folder(kFamily)).tie_word_embeddings);
  CHECK(error_with(kFamily, "model.embed_tokens.weight", 0x7f80).empty());
  CHECK(mentions(error_with(kFamily, "lm_head.weight", 0x7f80), {"lm_head.weight", "inf"}));
  REQUIRE(read_config(family_folder("qwen3")).tie_word_embeddings);
  CHECK(mentions(error_with("qwen3", "model.embed_tokens.weight", 0x7f80), {"model.embed_tokens.weight", "inf"}));
}

TEST_CASE("portable: a large weight is a weight like others") {
  const Altered altered(kFamily, "model.layers.0.mlp.up_proj.weight", 3, 5, 0x4580);
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, altered.folder(), kFamilyContext);
  CHECK(generator.logits({1, 2}).size() == 2);
}

}  // namespace
}  // namespace llama
