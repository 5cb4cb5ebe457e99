#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llama {

// The `count` names closest to `name` by edit distance, closest first, as "\"a\", \"b\", \"c\"": what to
// offer to a reader who asked for a name that is not there. Empty when there are no names.
std::string near_names(std::string_view name, const std::vector<std::string>& names, std::size_t count = 3);

}  // namespace llama
