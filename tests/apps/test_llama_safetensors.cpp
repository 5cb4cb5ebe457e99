#include <limits>
#include <span>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/safetensors.hpp"
#include "tests/apps/llama_support.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Floats = std::vector<float>;
using Shape = std::vector<std::int64_t>;

namespace {

// The views look into `file`.
std::vector<TensorView> read(const std::string& file) {
  return read_safetensors(std::as_bytes(std::span(file)), "test.safetensors");
}

std::string error_of_header(const std::string& header, std::size_t data_size) {
  return model_error_of([&] { read(safetensors_file(header, std::string(data_size, 'x'))); });
}

std::string one_tensor(const std::string& name) {
  return safetensors_file("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", raw({1.5f}));
}

constexpr const char* kThreeTypes = R"({"__metadata__":{"format":"pt"},
  "a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},
  "b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},
  "c":{"dtype":"F16","shape":[1],"data_offsets":[14,16]}})";

std::string three_types() {
  return safetensors_file(kThreeTypes, raw({1.0f, -2.5f}) + raw<std::uint16_t>({0x3f80, 0xc040, 0x7f80, 0x3c00}));
}

}  // namespace

TEST_CASE("a file of three types gives shapes and values") {
  const TempFolder folder;
  const SafeTensors model = SafeTensors::open(folder.write("m.safetensors", three_types()));
  CHECK(model.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(model.bytes() == 16);
  CHECK(model.weight("a", {2, 1}).shape == Shape{2, 1});
  CHECK(to_floats(model.at("a")) == Floats{1.0f, -2.5f});
  CHECK(to_floats(model.at("b")) == Floats{1.0f, -3.0f, std::numeric_limits<float>::infinity()});
  CHECK(to_floats(model.at("c")) == Floats{1.0f});
  CHECK(model.find("d") == nullptr);
}

TEST_CASE("a scalar and an empty tensor are tensors") {
  const std::string file = safetensors_file(R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},
    "s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                                            raw({3.0f}));
  const std::vector<TensorView> tensors = read(file);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].count() == 0);
  CHECK(to_floats(tensors[0]).empty());
  CHECK(to_floats(tensors[1]) == Floats{3.0f});
}

TEST_CASE("a file that is no whole safetensors file is refused") {
  CHECK(mentions(model_error_of([] { read("1234567"); }), {"7 bytes", "too short", "again"}));
  const std::string short_header = three_types().substr(0, 40);
  CHECK(mentions(model_error_of([&] { read(short_header); }), {"header has", "has 40"}));
  CHECK(mentions(model_error_of([] { read(std::string(64, '\xff')); }), {"header has 18446744073709551615"}));
  CHECK(mentions(error_of_header("no json", 0), {"no valid JSON"}));
  CHECK(mentions(error_of_header("[]", 0), {"no object"}));
  CHECK(mentions(error_of_header(R"({"a":7})", 0), {"\"a\"", "object"}));
  const std::string cut = three_types().substr(0, three_types().size() - 1);
  CHECK(mentions(model_error_of([&] { read(cut); }), {"\"c.data_offsets\"", "ends at byte 16", "only 15", "again"}));
  CHECK(mentions(model_error_of([] { read(three_types() + "x"); }), {"goes on after"}));
}

TEST_CASE("a header whose parts disagree is refused, naming the tensor") {
  const auto error_of = [](const std::string& rows, std::size_t data_size) {
    return error_of_header("{" + rows + "}", data_size);
  };
  const auto row = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"("t":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  CHECK(error_of(row("F32", "[2]", "[0,8]"), 8).empty());
  CHECK(mentions(error_of(row("F8_E4M3", "[8]", "[0,8]"), 8), {"t.dtype", "F8_E4M3", "BF16"}));
  CHECK(mentions(error_of(row("F32", "[3]", "[0,8]"), 8), {"\"t\"", "8 bytes", "F32 [3]"}));
  CHECK(mentions(error_of(row("F32", "[-2]", "[0,8]"), 8), {"t.shape.[0]", "integer"}));
  CHECK(mentions(error_of(row("F32", "[1e9]", "[0,8]"), 8), {"t.shape.[0]", "integer"}));
  CHECK(mentions(error_of(row("F32", "[1099511627776,1099511627776]", "[0,8]"), 8), {"does not fit"}));
  CHECK(mentions(error_of(row("F32", "[2]", "[8,0]"), 8), {"t.data_offsets", "lower one first"}));
  CHECK(mentions(error_of(row("F32", "[2]", "[0,4,8]"), 8), {"t.data_offsets", "two offsets"}));
  CHECK(mentions(error_of(row("F32", "[2]", "[0,18446744073709551615]"), 8), {"t.data_offsets"}));
  CHECK(mentions(error_of(row("F32", "[2]", "[4,12]"), 12), {"gap before", "\"t\""}));
  CHECK(mentions(error_of(R"("t":{"dtype":"F32","shape":[2]})", 8), {"\"t.data_offsets\"", "missing"}));
  const std::string u = R"(,"u":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})";
  CHECK(mentions(error_of(row("F32", "[2]", "[0,8]") + u, 12), {"\"u\"", "overlaps"}));
  CHECK(mentions(error_of(row("F32", "[2]", "[0,8]") + "," + row("F32", "[2]", "[0,8]"), 8), {"\"t\"", "twice"}));
  const std::string odd = R"("h":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)" + row("F32", "[1]", "[1,5]");
  CHECK(mentions(error_of(odd, 5), {"\"t\"", "not aligned", "4-byte", "save the model again"}));
}

TEST_CASE("a missing tensor is named, with its neighbours") {
  const SafeTensors model = SafeTensors::open(kModelFolder);
  const std::string error = model_error_of([&] { model.at("model.layers.0.self_attn.q_prj.weight"); });
  CHECK(mentions(error, {"q_prj", "nearest", "\"model.layers.0.self_attn.q_proj.weight\"", "config.json"}));
}

TEST_CASE("a weight of another shape or type is refused") {
  const TempFolder folder;
  const SafeTensors model = SafeTensors::open(folder.write("m.safetensors", three_types()));
  CHECK(mentions(model_error_of([&] { model.weight("a", {1, 2}); }), {"\"a\"", "[2, 1]", "[1, 2]", "config.json"}));
  const SafeTensors golden = SafeTensors::open(kGoldenFolder / "golden_logits.safetensors");
  CHECK(mentions(model_error_of([&] { golden.weight("ids", {200}); }), {"\"ids\"", "I32", "unquantised"}));
  CHECK_THROWS_AS(to_floats(golden.at("ids")), std::invalid_argument);
}

TEST_CASE("shards under an index are one model") {
  const TempFolder folder;
  folder.write("one.safetensors", one_tensor("a"));
  folder.write("two.safetensors", one_tensor("b"));
  folder.write("model.safetensors.index.json",
               R"({"metadata":{"total_size":8},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const SafeTensors model = SafeTensors::open(folder.path());
  CHECK(model.names() == std::vector<std::string>{"a", "b"});
  CHECK(to_floats(model.weight("b", {1})) == Floats{1.5f});
}

TEST_CASE("an index that does not fit its shards is refused") {
  const TempFolder folder;
  folder.write("one.safetensors", one_tensor("a"));
  folder.write("same.safetensors", one_tensor("a"));
  const auto error_of = [&](const std::string& map) {
    const auto index = folder.write("model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
    return model_error_of([&] { SafeTensors::open(index); });
  };
  CHECK(error_of(R"("a":"one.safetensors")").empty());
  CHECK(mentions(error_of(R"("b":"two.safetensors")"), {"index.json", "shard \"two.safetensors\"", "download"}));
  CHECK(mentions(error_of(R"("b":"one.safetensors")"), {"one.safetensors", "lacks", "\"b\""}));
  CHECK(mentions(error_of(R"("a":"one.safetensors","b":"same.safetensors")"), {"\"a\"", "another shard"}));
  CHECK(mentions(error_of(R"("a":"../one.safetensors")"), {"weight_map.a", "without a folder"}));
  for (const char* name : {"", ".", "..", "/", "sub/", "one.safetensors\\u0000", "\\u0000"}) {
    CHECK(mentions(error_of(R"("a":")" + std::string(name) + '"'), {"weight_map.a", "without a folder"}));
  }
  CHECK(mentions(error_of(R"("a":1)"), {"weight_map.a", "string"}));
}

TEST_CASE("a path without a model is refused with what to do") {
  const TempFolder folder;
  CHECK(mentions(model_error_of([&] { SafeTensors::open(folder.path()); }), {"neither", "index.json", "Hugging Face"}));
  CHECK(mentions(model_error_of([] { SafeTensors::open("no/such/model"); }), {"no/such/model", "does not exist"}));
  const auto empty = folder.write("model.safetensors", "");
  CHECK(mentions(model_error_of([&] { SafeTensors::open(empty); }), {"empty", "again"}));
  std::filesystem::create_directory(folder.path() / "d.safetensors");
  std::filesystem::create_directory(folder.path() / "d.safetensors/model.safetensors");
  CHECK(mentions(model_error_of([&] { SafeTensors::open(folder.path() / "d.safetensors"); }), {"not a regular file"}));
}

TEST_CASE("the shipped model has its weights and stays small") {
  const SafeTensors model = SafeTensors::open(kModelFolder);
  CHECK(model.weight("model.embed_tokens.weight", {1024, 256}).dtype == DType::kBF16);
  CHECK(model.weight("model.layers.5.mlp.down_proj.weight", {256, 576}).count() == 256 * 576);
  std::uintmax_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kModelFolder)) total += entry.file_size();
  CHECK(total <= 8'000'000);
}
