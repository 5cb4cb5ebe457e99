#include "host/tasks/chunk_list.hpp"
#include "support/internals.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include "catch.hpp"

using namespace flywheel;

namespace {
struct Wide {  // a chunk's size is no multiple of it
  std::uint32_t words[5];
};
using List = ChunkList<Wide>;

List list_of(std::uint32_t count) {
  List list;
  for (std::uint32_t i = 0; i < count; ++i) list.push_back({{i, i + 1, i + 2, i + 3, i + 4}});
  return list;
}

/// How many values of a list are not those of list_of().
std::uint32_t wrong_in(const List& list) {
  std::uint32_t wrong = 0;
  List::Reader reader(list, 0);
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    wrong += list[i].words[0] != i || list[i].words[4] != i + 4;
    wrong += reader.next().words[1] != i + 1;
  }
  for (std::uint32_t i = 0; i < list.size();)
    for (const Wide& value : list.piece(i, 1000)) wrong += value.words[2] != i++ + 2;
  return wrong;
}
}  // namespace

TEST_CASE("a chunk list keeps its values, also where a chunk ends, and when it is moved") {
  const std::uint32_t chunk = List::kPerChunk;
  for (const std::uint32_t count : {0u, 1u, chunk - 1, chunk, chunk + 1, 3 * chunk + 7}) {
    List list = list_of(count), other = list_of(5);
    CHECK(list.size() == count);
    CHECK(list.empty() == (count == 0));
    CHECK(wrong_in(list) == 0);
    other = std::move(list);
    CHECK(list.empty());
    CHECK(other.size() == count);
    other.push_back({{count, count + 1, count + 2, count + 3, count + 4}});
    list.push_back({{0, 1, 2, 3, 4}});
    CHECK(wrong_in(other) == 0);
    CHECK(wrong_in(list) == 0);
    CHECK(other.back().words[0] == count);
  }
}

TEST_CASE("a chunk list that was cut goes on where it was cut, in the chunks that it has") {
  const std::uint32_t chunk = List::kPerChunk;
  for (const std::uint32_t size : {0u, 1u, chunk - 1, chunk, chunk + 1, 2 * chunk}) {
    List list = list_of(3 * chunk);
    const std::size_t kept = kept_chunks();
    list.cut(size);
    CHECK(list.size() == size);
    for (std::uint32_t i = size; i < 3 * chunk; ++i) list.push_back({{i, i + 1, i + 2, i + 3, i + 4}});
    CHECK(wrong_in(list) == 0);
    CHECK(kept_chunks() == kept);
  }
}

TEST_CASE("values are appended across chunks, and room for them can be taken before") {
  using Numbers = ChunkList<std::uint32_t>;
  for (const std::uint32_t before : {0u, 1u, Numbers::kPerChunk - 1, Numbers::kPerChunk}) {
    std::vector<std::uint32_t> wanted(before + 2 * Numbers::kPerChunk);
    std::iota(wanted.begin(), wanted.end(), 0u);
    Numbers list;
    list.append(std::span(wanted).first(before));
    list.make_room(wanted.size() - before);
    const std::size_t kept = kept_chunks();
    list.append(std::span(wanted).subspan(before));
    CHECK(kept_chunks() == kept);
    Numbers::Reader reader(list, 0);
    std::uint32_t wrong = 0;
    for (const std::uint32_t value : wanted) wrong += reader.next() != value;
    CHECK(wrong == 0);
    CHECK(list.size() == wanted.size());
  }
}

TEST_CASE("values that are added together lie side by side, whatever was there before") {
  ChunkList<std::uint32_t> list;
  std::vector<std::uint32_t> places;
  const std::uint32_t chunk = ChunkList<std::uint32_t>::kPerChunk;
  for (std::uint32_t i = 0; list.size() < 3 * chunk; ++i) {
    const std::uint32_t count = i % 7;
    std::uint32_t* const values = list.add_together(count);
    places.push_back(list.size() - count);
    for (std::uint32_t k = 0; k < count; ++k) values[k] = i;
  }
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < places.size(); ++i)
    for (std::uint32_t k = 0; k < i % 7; ++k) wrong += (&list[places[i]])[k] != i;
  CHECK(wrong == 0);
}
