// The tasks of stream_tasks.hpp on a runtime: as a dynamic graph, a compiled and a phased one. What they leave in memory is
// held against the oracle's copy, byte by byte.
#pragma once

#include "support/stream_tasks.hpp"

namespace flywheel::testing {

class StreamBench {
 public:
  /// Calls of up to `most` elements.
  StreamBench(Runtime& runtime, std::uint64_t seed, std::uint32_t tasks, std::uint32_t most)
      : runtime_(runtime),
        random_(seed),
        drawn_(draw(tasks, most)),
        memory_(runtime.allocate<std::uint64_t>(total_words())) {}

  void check() {
    check(graph(false), false);
    check(graph(false), true);
    check(graph(true), false);
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  std::vector<DrawnCall> draw(std::uint32_t tasks, std::uint32_t most) {
    std::vector<DrawnCall> drawn;
    for (std::uint32_t t = 0; t < tasks; ++t) drawn.emplace_back(random_, most);
    return drawn;
  }
  /// A place of 16 bytes for the sum of each task, in front of its memory.
  std::size_t total_words() const {
    std::size_t bytes = 16;
    for (const DrawnCall& one : drawn_) bytes += 16 + one.bytes;
    return bytes / kWord;
  }
  std::vector<StreamCall> calls(unsigned char* at) const {
    std::vector<StreamCall> made;
    for (const DrawnCall& one : drawn_) {
      made.push_back(one.call);
      made.back().sum = reinterpret_cast<std::uint64_t*>(at);
      made.back().memory = at + 16;
      at += 16 + one.bytes;
    }
    return made;
  }
  Graph graph(bool phased) {
    Graph made;
    std::uint32_t t = 0;
    for (const StreamCall& call : calls(reinterpret_cast<unsigned char*>(memory_.data()))) {
      if (phased && t && t % 5 == 0) made.phase();
      if (t++ % 4 == 3) made.add(StoredStreams{call});
      else made.add(Streams{call});
    }
    return made;
  }
  void check(const Graph& graph, bool as_compiled) {
    const Executable executable = as_compiled ? runtime_.load(graph, compiled) : runtime_.load(graph);
    std::vector<std::uint64_t> words(memory_.size());
    for (std::uint64_t& word : words) word = random_();
    memory_.write(words);
    runtime_.submit(executable).wait();
    std::vector<AlignedLine> copy(words.size() / 2 + 1);
    std::memcpy(copy.data(), words.data(), words.size() * kWord);
    for (const StreamCall& call : calls(copy.front().bytes)) {
      PlainLoops loops;
      run_call(loops, call);
    }
    std::memcpy(words.data(), copy.data(), words.size() * kWord);
    const std::vector<std::uint64_t> found = memory_.read();
    std::size_t at = 0;
    for (const DrawnCall& one : drawn_) {
      const std::size_t end = at + (16 + one.bytes) / kWord;
      INFO("kind " << one.call.kind << ", " << one.call.n << " elements, offsets " << one.call.offsets[0] << ", "
                   << one.call.offsets[1] << ", " << one.call.offsets[2] << (as_compiled ? ", compiled" : ""));
      const auto from = static_cast<std::ptrdiff_t>(at), to = static_cast<std::ptrdiff_t>(end);
      REQUIRE(std::equal(found.begin() + from, found.begin() + to, words.begin() + from));
      at = end;
    }
  }

  Runtime& runtime_;
  Random random_;
  const std::vector<DrawnCall> drawn_;
  Buffer<std::uint64_t> memory_;
};

}  // namespace flywheel::testing
