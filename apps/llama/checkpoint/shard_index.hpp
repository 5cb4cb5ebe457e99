#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace llama {

// Which file of a model's folder holds which tensor: the weight_map of a model.safetensors.index.json.
struct ShardIndex {
  std::map<std::string, std::string> shard_of;  // by tensor
  std::set<std::string> shards;                 // plain file names, without a folder
};

// What to do about an index whose shards are not there.
extern const char* const kShardRemedy;

// Reads the text of an index; `file` is for messages. Throws ModelError when it is no such text or a shard is
// anything but the name of a file.
ShardIndex read_shard_index(std::string_view json, const std::filesystem::path& file);

}  // namespace llama
