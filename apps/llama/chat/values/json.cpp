#include "apps/llama/chat/values/json.hpp"

#include <nlohmann/json.hpp>

namespace llama::jinja {

Value value_of(Budget& budget, const nlohmann::ordered_json& json) {
  if (json.is_null()) return None();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    Values items;
    for (const auto& item : json) items.push_back(value_of(budget, item));
    return make_list(budget, std::move(items));
  }
  std::vector<Entry> entries;
  for (const auto& [key, value] : json.items()) entries.push_back({key, value_of(budget, value)});
  return make_dict(budget, std::move(entries));
}

}  // namespace llama::jinja
