#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace llama {

// A model's file is missing, broken or of a kind this reader does not know. what() reads
// "<file>: <what is wrong>; <what to do next>".
class ModelError : public std::runtime_error {
 public:
  ModelError(const std::filesystem::path& file, const std::string& problem, const std::string& remedy)
      : std::runtime_error(file.string() + ": " + problem + "; " + remedy),
        file_(file.string()),
        problem_(problem),
        remedy_(remedy) {}

  const std::string& file() const { return file_; }
  const std::string& problem() const { return problem_; }
  const std::string& remedy() const { return remedy_; }

 private:
  std::string file_;
  std::string problem_;
  std::string remedy_;
};

}  // namespace llama
