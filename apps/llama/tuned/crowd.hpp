// Any number of texts in the places of a decode: who ends leaves, who waits takes the place.
#pragma once

#include <algorithm>
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
///
/// Texts take blocks of the cache's pool as they grow. A text joins when there are the blocks of its prompt, one more, and one
/// for each text that is in; who came later waits behind it. Where the texts that are in want more for a step than there is,
/// the one that came last is paused: its blocks go to the host, or, if its prompt was still being read, are forgotten, and it
/// waits before all that are not in yet. It goes on with the same keys and values, or reads its prompt anew, which leaves the
/// same: it is the text that it is alone. The oldest text is never paused and a pool has room for any one, so each ends.
class Crowd {
 public:
  /// All must outlive it. `reader`: null if the decode's steps read the prompts. `requests`: each of no more positions than
  /// memory.pool.positions.
  Crowd(TunedMemory& memory, PromptReader* reader, const std::vector<Request>& requests);
  /// All blocks are free again.
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

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
  /// To be made until a text ends that another waits for, at most, and while the texts have blocks; those whose prompts are
  /// read write from now on. 0: all that wrote are paused, for one whose prompt is being read.
  std::uint32_t steps();
  std::size_t text_in(std::size_t place) const { return places_.at(place).text; }
  void leave(std::size_t place);   // its text has ended
  void went(std::uint32_t steps);  // have been made

  std::size_t pauses() const { return pauses_; }  // so far

 private:
  struct Place {
    bool taken = false, writes = false;
    std::size_t text = 0;
    std::uint32_t steps = 0;     // left, at most
    std::uint32_t position = 0;  // of its next step

    std::uint32_t end(std::uint32_t more) const { return position + std::min(more, steps); }
    std::uint32_t end() const { return position + steps; }
  };
  /// A text that has left its place before its end.
  struct Paused {
    std::size_t text = 0;
    std::uint32_t steps = 0;
    StepState next{};
    std::vector<Half> cache;  // none: its prompt is to be read anew
  };

  bool waits() const { return !paused_.empty() || next_ < requests_.size(); }
  bool seat_next(std::size_t place);
  /// The blocks of a text that is to join with so many positions, if there are as many as a join wants.
  bool take_blocks(std::size_t place, std::size_t text, std::size_t positions);
  void begin(std::size_t place, std::size_t text);
  void go_on(std::size_t place, const Paused& text);
  void put(std::size_t place, const Place& mine, const StepState& next);
  void put_text(std::size_t place);
  void begin_texts();
  std::uint32_t wanted_steps();
  /// Of all that write, for so many steps.
  int blocks_wanted(std::uint32_t steps) const;
  void grow(std::uint32_t steps);
  void pause_youngest();
  Paused take_out(std::size_t place);

  TunedMemory& memory_;
  PromptReader* reader_;
  const std::vector<Request>& requests_;
  std::vector<Place> places_;
  std::size_t next_ = 0;        // text to be seated when none is paused
  std::vector<Paused> paused_;  // the oldest last
  std::size_t pauses_ = 0;
  // What is to be written to the device, and of which places.
  std::vector<StepState> states_;
  std::vector<TunedText> texts_;
  std::vector<char> new_states_, new_texts_;
};

}  // namespace llama
