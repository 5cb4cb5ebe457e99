// Any number of texts in the places of a decode: who ends leaves, who waits takes the place.
#pragma once

#include <optional>
#include <vector>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/tuned/prompt_reader.hpp"

namespace llama {

/// Says what is to run next, and writes to the device what that needs. Of the places it only writes those whose text changes:
/// the others' state is the device's. One turn is
///
///   seat(), the tasks that embed if it says so; the prompt reader while it has_to_read(); steps() of the decode; went()
///
/// A text whose prompt is still being read idles in its place as one that has ended, at the step it will begin with: the key
/// and value that such a step leaves in the cache belong to a position that no pass reads, and the text's first step writes
/// them anew.
class Crowd {
 public:
  /// All must outlive it. `reader`: null if the decode's steps read the prompts.
  Crowd(TunedMemory& memory, PromptReader* reader, const std::vector<Request>& requests);

  bool over() const;  // all texts have ended
  /// Lets texts that wait into free places. True if there were any: the first step of each is to be embedded.
  bool seat();
  /// Whether the prompt reader has something to do before the next steps, of which it has `done` some runs: all that is left
  /// while nobody writes, else a run.
  bool has_to_read(bool done) const;
  bool anybody_writes() const;
  bool anybody_there() const;  // if not, all that were have ended with their first tokens
  /// Before a run of the prompt reader: if it writes the first token of a text, that one's place. After the run end_first(),
  /// which says whether there is more of it to be written: then its first step is to be embedded.
  std::optional<std::size_t> begin_first();
  bool end_first(std::size_t place);
  /// To be made until a text ends that another waits for, at most; those whose prompts are read write from now on.
  std::uint32_t steps();
  std::size_t text_in(std::size_t place) const { return places_.at(place).text; }
  void leave(std::size_t place) { places_.at(place) = {}; }  // its text has ended
  void went(std::uint32_t steps);                            // have been made

 private:
  struct Place {
    bool taken = false, writes = false;
    std::size_t text = 0;
    std::uint32_t steps = 0;  // left, at most
  };

  void seat(std::size_t place, std::size_t text);
  void put_text(std::size_t place);
  void begin_texts();
  bool waits() const { return next_ < requests_.size(); }

  TunedMemory& memory_;
  PromptReader* reader_;
  const std::vector<Request>& requests_;
  std::vector<Place> places_;
  std::size_t next_ = 0;  // text to be seated
  // What is to be written to the device, and of which places.
  std::vector<StepState> states_;
  std::vector<TunedText> texts_;
  std::vector<char> new_states_, new_texts_;
};

}  // namespace llama
