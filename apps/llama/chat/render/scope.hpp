// The names that a part of a template sees: its own, then those around it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/llama/chat/values/value.hpp"

namespace llama::jinja {

class Scope {
 public:
  explicit Scope(std::shared_ptr<const Scope> outer = nullptr) : outer_(std::move(outer)) {}

  const Value* find(Budget& budget, const std::string& name) const {
    for (const Scope* scope = this; scope; scope = scope->outer_.get()) {
      budget.spend(scope->own_.size() / 16 + 1);
      for (const auto& [own, value] : scope->own_)
        if (own == name) return &value;
    }
    return nullptr;
  }
  void set(Budget& budget, const std::string& name, Value value) {
    budget.spend(own_.size() / 16 + 1);
    for (auto& [own, old] : own_)
      if (own == name) return void(old = std::move(value));
    own_.emplace_back(name, std::move(value));
  }

 private:
  std::shared_ptr<const Scope> outer_;
  std::vector<std::pair<std::string, Value>> own_;
};

}  // namespace llama::jinja
