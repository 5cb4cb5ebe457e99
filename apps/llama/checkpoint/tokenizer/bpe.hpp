#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llama {

// Byte-pair encoding (Sennrich et al. 2016): a word starts as one token a byte; of all neighbours that may
// merge, the pair learnt first merges, leftmost first, until none is left.
class BytePairEncoder {
 public:
  struct Merge {
    int left;
    int right;
    int result;
  };

  // `byte_ids`: the token of each single byte. `merges`: in the order they were learnt.
  BytePairEncoder(const std::array<int, 256>& byte_ids, const std::vector<Merge>& merges);
  BytePairEncoder() = default;

  // Appends the tokens of `word` to `ids`. n log n in the word's length. Safe from several threads at once.
  void encode(std::string_view word, std::vector<int>& ids) const;

 private:
  struct Ranked {
    int rank;
    int result;
  };
  struct Candidate;
  class Word;
  const Ranked* find(int left, int right) const;

  std::array<int, 256> byte_ids_{};
  std::unordered_map<std::uint64_t, Ranked> merges_;
};

}  // namespace llama
