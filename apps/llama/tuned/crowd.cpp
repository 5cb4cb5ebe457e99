#include "apps/llama/tuned/crowd.hpp"

#include <algorithm>

namespace llama {
namespace {

TunedText text_of(const Request& request) {
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  return {request.sampling, prompt_count, prompt_count + request.tokens, request.stop_at_end};
}

/// Those that are marked, neighbours in one copy. Then none is.
template <class T>
void write_marked(Buffer<T>& to, const std::vector<T>& values, std::vector<char>& marked) {
  for (auto first = marked.begin(); (first = std::find(first, marked.end(), 1)) != marked.end();) {
    const auto last = std::find(first, marked.end(), 0);
    const auto at = static_cast<std::size_t>(first - marked.begin());
    to.write(values.data() + at, static_cast<std::size_t>(last - first), at);
    first = last;
  }
  std::ranges::fill(marked, 0);
}

}  // namespace

/// Places that no text is asked for compute the first step of one, whose result is dropped.
Crowd::Crowd(TunedMemory& memory, PromptReader* reader, const std::vector<Request>& requests)
    : memory_(memory),
      reader_(reader),
      requests_(requests),
      places_(static_cast<std::size_t>(memory.sequences)),
      states_(places_.size(), StepState{0, 0}),
      texts_(places_.size(), kNoText),
      new_states_(places_.size(), 1),
      new_texts_(places_.size(), 1) {
  if (reader_) reader_->forget();
  memory_.tables.clear();
}

Crowd::~Crowd() { memory_.tables.clear(); }

bool Crowd::over() const { return !waits() && std::ranges::none_of(places_, &Place::taken); }

bool Crowd::seat() {
  bool any = false;
  for (std::size_t place = 0; place < places_.size() && waits(); ++place) {
    if (places_[place].taken) continue;
    if (!seat_next(place)) break;
    any = true;
  }
  if (!any) return false;
  write_marked(memory_.states, states_, new_states_);
  memory_.tables.write();
  return true;
}

/// Those that are paused came before those that have not been in yet.
bool Crowd::seat_next(std::size_t place) {
  if (paused_.empty()) {
    if (!take_blocks(place, next_, requests_[next_].prompt.size())) return false;
    begin(place, next_++);
    return true;
  }
  const Paused& text = paused_.back();
  const bool anew = text.cache.empty();
  if (!take_blocks(place, text.text, anew ? requests_[text.text].prompt.size() : text.next.position)) return false;
  if (anew) begin(place, text.text);
  else go_on(place, text);
  paused_.pop_back();
  return true;
}

bool Crowd::take_blocks(std::size_t place, std::size_t text, std::size_t positions) {
  BlockTables& tables = memory_.tables;
  const auto blocks_of = [](std::size_t count) { return blocks_for(static_cast<std::int64_t>(count)); };
  int wanted = std::min(blocks_of(positions) + 1, blocks_of(steps_from(0, requests_[text])));
  for (std::size_t other = 0; other < places_.size(); ++other)
    if (places_[other].taken && tables.wanted(other, places_[other].end()) > 0) ++wanted;
  return wanted <= tables.free_blocks() && tables.grow(place, static_cast<std::uint32_t>(positions));
}

void Crowd::begin(std::size_t place, std::size_t text) {
  const std::vector<std::uint32_t>& prompt = requests_[text].prompt;
  const std::uint32_t first = reader_ ? reader_->add(static_cast<std::uint32_t>(place), prompt.size(), true) : 0;
  put(place, {true, false, text, steps_from(first, requests_[text]), first}, {first, prompt[first]});
}

void Crowd::go_on(std::size_t place, const Paused& text) {
  memory_.write_blocks(place, text.cache);
  put(place, {true, false, text.text, text.steps, text.next.position}, text.next);
}

void Crowd::put(std::size_t place, const Place& mine, const StepState& next) {
  const std::vector<std::uint32_t>& prompt = requests_[mine.text].prompt;
  memory_.prompt.write(prompt.data(), prompt.size(), place * static_cast<std::size_t>(memory_.context));
  places_[place] = mine;
  states_[place] = next;
  texts_[place] = kNoText;
  new_states_[place] = new_texts_[place] = 1;
}

void Crowd::leave(std::size_t place) {
  places_.at(place) = {};
  memory_.tables.clear(place);
}

bool Crowd::anybody_there() const { return std::ranges::any_of(places_, &Place::taken); }

bool Crowd::anybody_writes() const { return std::ranges::any_of(places_, &Place::writes); }

bool Crowd::has_to_read(bool done) const { return reader_ && reader_->has_any() && !(done && anybody_writes()); }

std::uint32_t Crowd::steps() {
  begin_texts();
  while (anybody_writes() && blocks_wanted(1) > memory_.tables.free_blocks()) pause_youngest();
  write_marked(memory_.texts, texts_, new_texts_);
  if (!anybody_writes()) return 0;
  std::uint32_t steps = wanted_steps();
  while (blocks_wanted(steps) > memory_.tables.free_blocks()) steps /= 2;
  grow(steps);
  memory_.tables.write();
  return steps;
}

/// While texts wait for blocks, those that are in take few ahead.
std::uint32_t Crowd::wanted_steps() {
  if (reader_ && reader_->has_any()) return 1;
  std::uint32_t least = ~0u, most = 0, texts = 0;
  for (const Place& place : places_) {
    if (!place.writes) continue;
    least = std::min(least, place.steps);
    most = std::max(most, place.steps);
    ++texts;
  }
  memory_.writing.write({waits() ? 1 : texts});
  if (!waits()) return most;
  return memory_.tables.scarce() ? std::min<std::uint32_t>(least, kBlockPositions) : least;
}

int Crowd::blocks_wanted(std::uint32_t steps) const {
  int wanted = 0;
  for (std::size_t place = 0; place < places_.size(); ++place)
    if (places_[place].writes) wanted += memory_.tables.wanted(place, places_[place].end(steps));
  return wanted;
}

/// Where there are blocks for all, a text takes its own at once: its table is written once.
void Crowd::grow(std::uint32_t steps) {
  const bool scarce = memory_.tables.scarce();
  for (std::size_t place = 0; place < places_.size(); ++place)
    if (const Place& mine = places_[place]; mine.writes) memory_.tables.grow(place, scarce ? mine.end(steps) : mine.end());
}

/// All that are in came before those that are paused.
void Crowd::pause_youngest() {
  const auto age = [](const Place& place) { return place.taken ? place.text + 1 : 0; };
  const auto place = static_cast<std::size_t>(std::ranges::max_element(places_, {}, age) - places_.begin());
  paused_.push_back(take_out(place));
  leave(place);
  texts_[place] = kNoText;
  new_texts_[place] = 1;
  ++pauses_;
}

Crowd::Paused Crowd::take_out(std::size_t place) {
  Paused out{places_[place].text, places_[place].steps, {}, {}};
  const auto number = static_cast<std::uint32_t>(place);
  if (reader_ && reader_->has(number)) {
    reader_->forget(number);
    return out;
  }
  memory_.states.read(&out.next, 1, place);
  out.cache = memory_.read_blocks(place, out.next.position);
  return out;
}

void Crowd::put_text(std::size_t place) {
  texts_[place] = text_of(requests_[places_[place].text]);
  new_texts_[place] = 1;
}

void Crowd::begin_texts() {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    Place& mine = places_[place];
    if (!mine.taken || mine.writes || (reader_ && reader_->has(static_cast<std::uint32_t>(place)))) continue;
    mine.writes = true;
    put_text(place);
  }
}

std::optional<std::size_t> Crowd::begin_first() {
  const std::optional<std::uint32_t> place = reader_->next_to_write(anybody_writes());
  if (!place) return {};
  put_text(*place);
  write_marked(memory_.texts, texts_, new_texts_);
  return *place;
}

bool Crowd::end_first(std::size_t place) {
  if (!places_[place].taken) return false;
  --places_[place].steps;
  ++places_[place].position;
  return true;
}

void Crowd::went(std::uint32_t steps) {
  for (Place& place : places_) {
    if (!place.writes) continue;
    place.position = place.end(steps);
    place.steps -= std::min(steps, place.steps);
  }
}

}  // namespace llama
