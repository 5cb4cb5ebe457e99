// Small random models of all families on CPU workers, against transformers: Llama 3's stretched frequencies,
// grouped queries, head sizes of their own, norms of queries and keys, biases, windows, tied and untied outputs,
// bf16 and float32.
#include <bit>

#include "catch.hpp"
#include "llama_families_support.hpp"

namespace llama {
namespace {

/// A wrong model must miss by this at least, where it can show.
constexpr double kLeastMiss = 1000 * kMostFamilyError;
/// A bias that is the same for all positions moves weights less than a norm does.
constexpr double kLeastMissOfBias = 100 * kMostFamilyError;
/// One position more or less of two dozen may weigh little.
constexpr double kLeastMissOfWindow = 10 * kMostFamilyError;
/// The first position at which stretched frequencies have turned far enough to matter.
constexpr std::size_t kLate = 16;

std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("run this test in the repository's root: no " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The value `count` times.
std::string repeated(float value, const std::string& dtype, std::size_t count) {
  const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const std::string one = dtype == "BF16" ? raw<std::uint16_t>({upper}) : raw<float>({value});
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += one;
  return bytes;
}

/// The safetensors file `bytes` with this value throughout every tensor whose name contains `part`; adds to `changed` for
/// each.
std::string with_value(std::string bytes, float value, const std::string& part, int& changed) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const auto header = nlohmann::json::parse(bytes.substr(sizeof header_size, header_size));
  for (const auto& [name, tensor] : header.items()) {
    if (name.find(part) == std::string::npos) continue;
    const std::string values = repeated(value, tensor["dtype"], tensor["shape"][0]);
    bytes.replace(sizeof header_size + header_size + tensor["data_offsets"][0].get<std::size_t>(), values.size(), values);
    ++changed;
  }
  return bytes;
}

nlohmann::json without_scaling(nlohmann::json config) {
  config.erase("rope_scaling");
  if (config.contains("rope_parameters"))
    config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", config["rope_parameters"]["rope_theta"]}};
  return config;
}

/// Errors of the family's model with this config.json and model.safetensors in place of its own.
std::vector<double> errors_with(const FamilyGolden& golden, const std::string& config, const std::string& weights) {
  const TempFolder altered;
  altered.write("config.json", config);
  altered.write("model.safetensors", weights);
  Runtime runtime = cpu_runtime();
  return errors_of(runtime, altered.path(), golden);
}

TEST_CASE("logits of all families agree with transformers at every position") {
  const std::string name = GENERATE(from_range(kFamilies));
  const FamilyGolden golden(name);
  REQUIRE(golden.ids.size() == 48);
  Runtime runtime = cpu_runtime();
  const auto errors = errors_of(runtime, family_folder(name), golden);
  REQUIRE(errors.size() == golden.ids.size());
  for (std::size_t position = 0; position < errors.size(); ++position) {
    INFO(name << " at position " << position);
    CHECK(errors[position] < kMostFamilyError);
  }
}

TEST_CASE("all families write the likeliest tokens that transformers writes") {
  const std::string name = GENERATE(from_range(kFamilies));
  INFO(name);
  const FamilyGolden golden(name);
  REQUIRE(golden.greedy.size() == 64);
  REQUIRE(golden.least_gap() > 1e-3);  // far above the noise of logits of about 2
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, family_folder(name), kFamilyContext);
  CHECK(write_tokens(generator, golden.greedy_request()) == golden.greedy);
}

TEST_CASE("without Llama 3's rope scaling late logits are far off, and the first is not") {
  const std::string name = GENERATE(from_range(kScaledFamilies));
  const FamilyGolden golden(name);
  const auto config = read_json(family_folder(name) / "config.json");
  const auto errors =
      errors_with(golden, without_scaling(config).dump(), read_bytes(family_folder(name) / "model.safetensors"));
  CHECK(errors[0] < kMostFamilyError);
  for (std::size_t position = kLate; position < errors.size(); ++position) {
    INFO(name << " at position " << position);
    CHECK(errors[position] > kLeastMiss);
  }
}

TEST_CASE("with ones for the weights of a query or key norm logits are far off, but for the first") {
  const std::string name = GENERATE(from_range(kNormedFamilies));
  const std::string norm = GENERATE("q_norm", "k_norm");
  const FamilyGolden golden(name);
  const auto folder = family_folder(name);
  int changed = 0;
  const std::string weights = with_value(read_bytes(folder / "model.safetensors"), 1, norm, changed);
  REQUIRE(changed == read_config(folder).num_hidden_layers);
  const auto errors = errors_with(golden, read_bytes(folder / "config.json"), weights);
  CHECK(errors[0] < kMostFamilyError);
  for (std::size_t position = 1; position < errors.size(); ++position) {
    INFO(name << " without " << norm << " at position " << position);
    CHECK(errors[position] > kLeastMiss);
  }
}

// The first position attends to itself, whatever its query and key are.
TEST_CASE("with zeros for the biases of queries, keys or values logits are far off") {
  const std::string name = GENERATE(from_range(kBiasedFamilies));
  const std::string projection = GENERATE("q_proj", "k_proj", "v_proj");
  const FamilyGolden golden(name);
  const auto folder = family_folder(name);
  int changed = 0;
  const std::string weights = with_value(read_bytes(folder / "model.safetensors"), 0, projection + ".bias", changed);
  REQUIRE(changed == read_config(folder).num_hidden_layers);
  const auto errors = errors_with(golden, read_bytes(folder / "config.json"), weights);
  const bool of_values = projection == "v_proj";
  if (!of_values) CHECK(errors[0] < kMostFamilyError);
  for (std::size_t position = of_values ? 0 : 1; position < errors.size(); ++position) {
    INFO(name << " without biases of " << projection << " at position " << position);
    CHECK(errors[position] > kLeastMissOfBias);
  }
}

TEST_CASE("without a window, or with one of another length, logits are right up to it and wrong from there on") {
  const WindowedFamily family = GENERATE(from_range(kWindowedFamilies));
  const auto window = static_cast<int>(family.window);
  const int wrong = GENERATE_COPY(0, window - 1, window + 1);  // 0: none
  const FamilyGolden golden(family.name);
  nlohmann::json config = read_json(family_folder(family.name) / "config.json");
  REQUIRE(config["sliding_window"] == window);
  config["sliding_window"] = wrong ? nlohmann::json(wrong) : nlohmann::json(nullptr);
  const auto errors = errors_with(golden, config.dump(), read_bytes(family_folder(family.name) / "model.safetensors"));
  const auto first = static_cast<std::size_t>(wrong ? std::min(wrong, window) : window);
  for (std::size_t position = 0; position < errors.size(); ++position) {
    INFO(family.name << " with a window of " << wrong << " at position " << position);
    if (position < first) CHECK(errors[position] < kMostFamilyError);
    else CHECK(errors[position] > kLeastMissOfWindow);
  }
}

}  // namespace
}  // namespace llama
