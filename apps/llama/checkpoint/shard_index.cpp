#include "apps/llama/checkpoint/shard_index.hpp"

#include "apps/llama/checkpoint/json_node.hpp"

namespace llama {
namespace {

// A zero byte would end the name for the system, which then opens another file than the one that messages name.
bool is_file_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('\0') != name.npos) return false;
  return std::filesystem::path(name).filename() == name;
}

}  // namespace

const char* const kShardRemedy = "download every .safetensors file that the index lists into the index's folder";

ShardIndex read_shard_index(std::string_view json, const std::filesystem::path& file) {
  ShardIndex index;
  JsonNode::parse(json, file).at("weight_map").each_member([&](const std::string& tensor, const JsonNode& shard) {
    if (!is_file_name(shard.text())) shard.fail("should be a file name without a folder", kShardRemedy);
    index.shard_of.emplace(tensor, shard.text());
    index.shards.insert(shard.text());
  });
  return index;
}

}  // namespace llama
