// model.safetensors.index.json: whatever the text, it is refused with a ModelError or names files of one folder.
#include <filesystem>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/near_names.hpp"
#include "apps/llama/checkpoint/shard_index.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace llama;
using flywheel::fuzz::expect;

namespace {

void check_shard(const std::string& shard) {
  expect(!shard.empty() && shard != "." && shard != "..", "a shard is a file");
  expect(shard.find('/') == shard.npos, "a shard is in the index's folder");
  expect(shard.find('\0') == shard.npos, "the system sees all of a shard's name");
  expect((std::filesystem::path("folder") / shard).parent_path() == "folder", "a shard leads to no other folder");
}

}  // namespace

void flywheel::fuzz::run(std::string_view input) {
  try {
    const ShardIndex index = read_shard_index(input, "model.safetensors.index.json");
    for (const std::string& shard : index.shards) check_shard(shard);
    std::vector<std::string> names;
    for (const auto& [name, shard] : index.shard_of) {
      expect(index.shards.contains(shard), "every tensor's shard is among the shards");
      names.push_back(name);
    }
    near_names("model.norm.weight", names);
  } catch (const ModelError&) {}
}
