// What the tests of apps/llama/checkpoint share. Tests run in the repository's root, so paths below it need no
// prefix.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/error.hpp"

namespace llama {

inline const std::filesystem::path kModelFolder = "apps/llama/model";
inline const std::filesystem::path kGoldenFolder = "tests/apps/data";

/// A folder of its own for one test, gone with it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "flywheel-llama-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline nlohmann::json read_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("run this test in the repository's root: no " + file.string());
  return nlohmann::json::parse(stream);
}

/// The message of the ModelError that `action` throws; empty if it throws nothing. Other exceptions pass
/// through.
template <class Action>
std::string model_error_of(Action&& action) {
  try {
    action();
  } catch (const ModelError& error) {
    return error.what();
  }
  return {};
}

inline bool mentions(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

/// A safetensors file: the size, `header`, and `data`. Headers are filled up with spaces to a multiple of
/// eight.
inline std::string safetensors_file(std::string header, const std::string& data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::string file(sizeof size, '\0');
  std::memcpy(file.data(), &size, sizeof size);
  return file + header + data;
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

}  // namespace llama
