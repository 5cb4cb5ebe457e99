// A mutation beside libFuzzer's own: one number of the input becomes one that is at the edge of something.
// Bytes that change one by one hardly ever lead to another sound number, and sizes, ids and offsets are where
// parsers overflow.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::array<std::string_view, 36> kEdges = {"0",
                                                     "-0",
                                                     "1",
                                                     "-1",
                                                     "2",
                                                     "3",
                                                     "7",
                                                     "8",
                                                     "64",
                                                     "128",
                                                     "255",
                                                     "256",
                                                     "1024",
                                                     "4095",
                                                     "32768",
                                                     "65535",
                                                     "65536",
                                                     "65537",
                                                     "1048576",
                                                     "4194303",
                                                     "4194304",
                                                     "8388608",
                                                     "16777215",
                                                     "16777216",
                                                     "16777217",
                                                     "2147483647",
                                                     "2147483648",
                                                     "4294967296",
                                                     "1099511627776",
                                                     "9223372036854775807",
                                                     "18446744073709551615",
                                                     "0.5",
                                                     "1.5",
                                                     "1e300",
                                                     "1e-300",
                                                     "1e40"};

struct Run {
  std::size_t begin, size;
};

/// Where the text holds numbers, as JSON writes them or nearly so.
std::vector<Run> numbers_of(std::string_view text) {
  constexpr std::string_view kFirst = "-0123456789", kRest = "+-.0123456789eE";
  std::vector<Run> runs;
  for (std::size_t at = text.find_first_of(kFirst); at != text.npos; at = text.find_first_of(kFirst, at)) {
    const std::size_t end = std::min(text.find_first_not_of(kRest, at), text.size());
    runs.push_back({at, end - at});
    at = end;
  }
  return runs;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<Run> runs = numbers_of(text);
  if (seed % 4 != 0 || runs.empty()) return LLVMFuzzerMutate(data, size, max_size);
  const Run run = runs[seed / 4 % runs.size()];
  text.replace(run.begin, run.size, kEdges[seed / 4 / runs.size() % kEdges.size()]);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
