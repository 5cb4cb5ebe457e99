// What the tests of chat templates share: a template, its names as JSON, and what comes of it.
#pragma once

#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "apps/llama/chat/template.hpp"
#include "apps/llama/chat/values/json.hpp"
#include "llama_support.hpp"

namespace llama {

inline constexpr std::time_t kNow = 1'732'963'200;  // 30 November 2024, 10:40, UTC

inline std::string rendered(std::string_view source, const nlohmann::ordered_json& with = nlohmann::ordered_json::object(),
                            std::uint64_t steps = jinja::kUsualSteps) {
  jinja::Budget budget(jinja::kUsualSteps);
  jinja::Names names;
  for (const auto& [name, value] : with.items()) names.emplace_back(name, jinja::value_of(budget, value));
  return ChatTemplate(source, "chat.jinja").render(names, kNow, steps);
}

}  // namespace llama
