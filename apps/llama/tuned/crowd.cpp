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
}

bool Crowd::over() const { return !waits() && std::ranges::none_of(places_, &Place::taken); }

bool Crowd::seat() {
  const std::size_t before = next_;
  for (std::size_t place = 0; place < places_.size() && waits(); ++place)
    if (!places_[place].taken) seat(place, next_++);
  if (next_ == before) return false;
  write_marked(memory_.states, states_, new_states_);
  return true;
}

void Crowd::seat(std::size_t place, std::size_t text) {
  const std::vector<std::uint32_t>& prompt = requests_[text].prompt;
  memory_.prompt.write(prompt.data(), prompt.size(), place * static_cast<std::size_t>(memory_.context));
  const std::uint32_t first = reader_ ? reader_->add(static_cast<std::uint32_t>(place), prompt.size(), true) : 0;
  places_[place] = {true, false, text, steps_from(first, requests_[text])};
  states_[place] = {first, prompt[first]};
  texts_[place] = kNoText;
  new_states_[place] = new_texts_[place] = 1;
}

bool Crowd::anybody_there() const { return std::ranges::any_of(places_, &Place::taken); }

bool Crowd::anybody_writes() const { return std::ranges::any_of(places_, &Place::writes); }

bool Crowd::has_to_read(bool done) const { return reader_ && reader_->has_any() && !(done && anybody_writes()); }

std::uint32_t Crowd::steps() {
  begin_texts();
  if (reader_ && reader_->has_any()) return 1;
  std::uint32_t least = ~0u, most = 0, texts = 0;
  for (const Place& place : places_) {
    if (!place.writes) continue;
    least = std::min(least, place.steps);
    most = std::max(most, place.steps);
    ++texts;
  }
  memory_.writing.write({waits() ? 1 : texts});
  return waits() ? least : most;
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
  write_marked(memory_.texts, texts_, new_texts_);
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
  return true;
}

void Crowd::went(std::uint32_t steps) {
  for (Place& place : places_)
    if (place.writes) place.steps -= std::min(steps, place.steps);
}

}  // namespace llama
