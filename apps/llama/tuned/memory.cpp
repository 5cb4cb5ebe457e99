#include "apps/llama/tuned/memory.hpp"

#include <algorithm>
#include <bit>

#include "apps/llama/decode/rope.hpp"

namespace llama {
namespace {

std::size_t count_of(int a, int b = 1, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

/// So many that each has about kFewestPositions when the context is full, but no more than there are workers: parts wait for
/// each other. Half a part more on the workers that are left is slower, see tuning.md.
int choose_splits(const Runtime& runtime, const Config& config, int context, int sequences) {
  if (context <= kAlone) return 1;
  const unsigned parts = static_cast<unsigned>((context + kFewestPositions - 1) / kFewestPositions);
  const std::size_t slices = head_slices(config, static_cast<int>(runtime.workers()), sequences).size();
  const unsigned most = std::max(1u, runtime.workers() / static_cast<unsigned>(slices * static_cast<std::size_t>(sequences)));
  return static_cast<int>(std::min({std::bit_ceil(parts), std::bit_floor(most), 64u}));  // a power of 2: see Partials
}

Partials partials_of(Stamped* memory, const Config& config, int splits, int sequences) {
  const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
  return {memory, narrow(config.num_attention_heads), narrow(splits), narrow(config.head_dim), narrow(sequences)};
}

}  // namespace

std::vector<HeadSlice> head_slices(const Config& config, int workers, int sequences) {
  const int group = config.num_attention_heads / config.num_key_value_heads;
  const int wanted = (group + kHeadsTogether - 1) / kHeadsTogether;
  const int slices = wanted * config.num_key_value_heads * sequences <= workers ? wanted : 1;
  std::vector<HeadSlice> all;
  for (int begin = 0; begin < config.num_attention_heads; begin += group)
    for (int i = 0; i < slices; ++i) {
      const int first = begin + group * i / slices, end = begin + group * (i + 1) / slices;
      all.push_back({first, end - first});
    }
  return all;
}

StepMemory::StepMemory(Runtime& runtime, const Config& config, int context, int count)
    : sequences(count),
      splits(choose_splits(runtime, config, context, count)),
      stages(2 * config.num_hidden_layers + 1),
      squares_of_stage(count * (config.hidden_size / kGroupRows + 1)),
      x(runtime.allocate<Stamped>(count_of(stages, count, config.hidden_size))),
      packed_x(runtime.allocate<Stamped>(count_of(stages) * packed_size(count, config.hidden_size))),
      squares(runtime.allocate<Stamped>(count_of(stages, squares_of_stage))),
      qkv(runtime.allocate<Stamped>(count_of(config.num_hidden_layers, count, config.qkv_size()))),
      packed_results(runtime.allocate<Stamped>(count_of(config.num_hidden_layers) * packed_size(count, config.query_size()))),
      packed_inner(
          runtime.allocate<Stamped>(count_of(config.num_hidden_layers) * packed_size(count, config.intermediate_size))),
      inner(runtime.allocate<float>(count_of(count, config.intermediate_size))),
      parts(
          runtime.allocate<Stamped>(count_of(config.num_hidden_layers) * partials_of(nullptr, config, splits, count).words())),
      states(runtime.allocate<StepState>(count_of(count))) {}

Partials StepMemory::partials(const Config& config, std::size_t layer) const {
  Partials of_layer = partials_of(parts.data(), config, splits, sequences);
  of_layer.memory += layer * of_layer.words();
  return of_layer;
}

TunedMemory::TunedMemory(Runtime& runtime, const Config& config, int room, int count, int beyond)
    : StepMemory(runtime, config, room, count > kMostSequences ? 1 : count),
      positions(room),
      context((room + beyond + 15) / 16 * 16),
      logits(runtime.allocate<float>(count_of(count, config.vocab_size))),
      prompt(runtime.allocate<std::uint32_t>(count_of(count, context))),
      ends(runtime.upload(std::vector<std::uint32_t>(config.eos_token_ids.begin(), config.eos_token_ids.end()))),
      rope(runtime.upload(rope_table(config, context))),
      texts(runtime.upload(std::vector<TunedText>(count_of(count)))),
      writing(runtime.allocate<std::uint32_t>(1)),
      choice(runtime.allocate<ChoiceMemory>(1)),
      runtime_(runtime) {
  if (count > kMostSequences) {  // their steps have activations of their own, see RowsMemory
    sequences = count;
    states = runtime.allocate<StepState>(count_of(count));
  }
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    keys.push_back(runtime.allocate<Half>(count_of(count, config.key_value_size(), context)));
    values_cache.push_back(runtime.allocate<Half>(count_of(count, config.key_value_size(), context)));
  }
}

void TunedMemory::provide_best(const std::vector<std::int32_t>& rows) {
  best = runtime_.allocate<BestWords>(best_words(sequences, static_cast<int>(rows.size()) - 1));
  first_rows = runtime_.upload(rows);
}

void TunedMemory::forget_values() {
  const std::vector<Half> zeros(std::size_t{1} << 20);
  for (Buffer<Half>& values : values_cache)
    for (std::size_t at = 0; at < values.size(); at += zeros.size())
      values.write(zeros.data(), std::min(zeros.size(), values.size() - at), at);
}

/// Each text's last chunk may be short, and the one behind all is there, too.
PromptMemory::PromptMemory(Runtime& runtime, const Config& config, const TunedMemory& texts, int positions)
    : StepMemory(runtime, config, texts.context, positions),
      chunks(runtime.allocate<PromptChunk>(count_of(texts.sequences, texts.context / positions + 1) + 1)) {}

std::uint32_t PromptMemory::add_chunks(std::vector<PromptChunk>& to, std::uint32_t text, std::size_t count) const {
  const auto each = static_cast<std::uint32_t>(sequences), all = static_cast<std::uint32_t>(count);
  const std::uint32_t end = all % each == 1 ? all - 1 : all;
  for (std::uint32_t first = 0; first < end; first += each) to.push_back({text, first, std::min(first + each, end)});
  return end;
}

}  // namespace llama
