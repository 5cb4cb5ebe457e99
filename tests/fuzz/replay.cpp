// Runs a harness over the files of folders, where there is no fuzzing engine: fuzz_replay_<parser> FOLDER...
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace {

// In a heap block of just the file's size, so that a sanitizer sees a read past its end.
std::vector<char> read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  int replayed = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      const std::vector<char> bytes = read_bytes(entry.path());
      flywheel::fuzz::run({bytes.data(), bytes.size()});
      ++replayed;
    }
  }
  std::printf("%d inputs\n", replayed);
  return replayed > 0 ? 0 : 1;
}
