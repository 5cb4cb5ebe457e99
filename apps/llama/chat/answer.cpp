#include "apps/llama/chat/answer.hpp"

#include <algorithm>
#include <utility>

namespace llama {

AnswerText::AnswerText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string AnswerText::give(std::size_t size) {
  std::string given = held_.substr(0, size);
  held_.erase(0, size);
  text_ += given;
  return given;
}

std::string AnswerText::push(std::string_view piece) {
  if (has_stopped_) return "";
  held_ += piece;
  std::size_t first = held_.size();
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first < held_.size()) {
    std::string given = give(first);
    held_.clear();
    has_stopped_ = true;
    return given;
  }
  std::size_t kept = 0;
  for (const std::string& stop : stops_) {
    std::size_t size = std::min(stop.size() - 1, held_.size());
    while (size > kept && !stop.starts_with(std::string_view(held_).substr(held_.size() - size))) --size;
    kept = std::max(kept, size);
  }
  return give(held_.size() - kept);
}

std::string AnswerText::finish() { return give(held_.size()); }

}  // namespace llama
