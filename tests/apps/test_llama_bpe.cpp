// Byte-pair encoding against its definition: look at all pairs, merge the leftmost of the best, begin again.
#include <rapidcheck.h>

#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/bpe.hpp"
#include "tests/catch.hpp"

using namespace llama;
using Ids = std::vector<int>;
using Merges = std::vector<BytePairEncoder::Merge>;

namespace {

std::array<int, 256> bytes_as_ids() {
  std::array<int, 256> ids{};
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

std::optional<std::size_t> position_of(const Ids& ids, const BytePairEncoder::Merge& merge) {
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    if (ids[i] == merge.left && ids[i + 1] == merge.right) return i;
  }
  return std::nullopt;
}

bool merge_once(Ids& ids, const Merges& merges) {
  for (const auto& merge : merges) {
    if (const auto at = position_of(ids, merge)) {
      ids[*at] = merge.result;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(*at) + 1);
      return true;
    }
  }
  return false;
}

Ids plainly_encoded(const std::string& word, const Merges& merges) {
  Ids ids(word.begin(), word.end());
  while (merge_once(ids, merges)) {}
  return ids;
}

Ids encoded(const std::string& word, const Merges& merges) {
  Ids ids;
  BytePairEncoder(bytes_as_ids(), merges).encode(word, ids);
  return ids;
}

// Merges over a, b and c and over what earlier merges made; no pair twice.
Merges random_merges() {
  Ids known = {'a', 'b', 'c'};
  Merges merges;
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i) {
    const int left = *rc::gen::elementOf(known);
    const int right = *rc::gen::elementOf(known);
    const int result = 256 + static_cast<int>(merges.size());
    const auto same = [&](const auto& merge) { return merge.left == left && merge.right == right; };
    if (std::any_of(merges.begin(), merges.end(), same)) continue;
    merges.push_back({left, right, result});
    known.push_back(result);
  }
  return merges;
}

}  // namespace

TEST_CASE("a word without merges is its bytes") {
  CHECK(encoded("", {}).empty());
  CHECK(encoded("ab", {}) == Ids{'a', 'b'});
}

TEST_CASE("pairs merge in the order they were learnt, leftmost first") {
  CHECK(encoded("aaa", {{'a', 'a', 256}}) == Ids{256, 'a'});
  CHECK(encoded("aaaa", {{'a', 'a', 256}, {256, 256, 257}}) == Ids{257});
  CHECK(encoded("abc", {{'b', 'c', 256}, {'a', 'b', 257}}) == Ids{'a', 256});
  CHECK(encoded("abc", {{'a', 'b', 256}, {'b', 'c', 257}}) == Ids{256, 'c'});
}

TEST_CASE("a pair that changed waits for its new turn") {
  const Merges merges = {{'b', 'c', 256}, {'a', 'b', 257}, {256, 'd', 258}, {'a', 256, 259}};
  CHECK(encoded("abcd", merges) == Ids{'a', 258});
}

TEST_CASE("any merges on any word give what the definition gives") {
  CHECK(rc::check([] {
    const Merges merges = random_merges();
    const auto word = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
    RC_ASSERT(encoded(word, merges) == plainly_encoded(word, merges));
  }));
}
