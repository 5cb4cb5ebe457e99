// A warp that works a tree off: the nodes in its ring, a lane each or all lanes one, until no warp has any.
#pragma once

#include "../records/device_state.hpp"
#include "tree_memory.hpp"

namespace flywheel::detail {

/// `P`: the platform of a warp, of kWarps of a worker. All lanes call each function, unless it says otherwise.
template <class P, class Node, std::uint32_t kWarps>
class TreeWarp {
  using Leader = typename P::Leader;
  using Entry = TreeEntry<Node>;
  using Shape = TreeShape<Node>;
  using Type = NodeType<Node>;
  using Mail = TreeMail<Node, kWarps>;
  static_assert(sizeof(Mail) <= Mail::kBytes);
  static constexpr std::uint32_t kAtOnce = is_thread_node<Node>() ? P::lanes() : 1;  // nodes that the warp runs at once
  static_assert(Shape::kRing / 2 >= Type::kMostSpawns, "a node of a tree spawns too often for the scratch memory of a warp");

 public:
  /// A node for a lane, or none.
  struct Taken {
    Node node;
    std::uint32_t index;
    bool there;
  };

  FLYWHEEL_TASK TreeWarp(const DeviceState& dev, const TreeMemory& memory, std::uint32_t worker, Mail& mail,
                         unsigned char* ring)
      : dev_(dev),
        memory_(memory),
        worker_(worker),
        mail_(mail),
        size_word_(reinterpret_cast<std::uint32_t*>(ring)),
        ring_(reinterpret_cast<Entry*>(ring + 16)) {}

  /// Works the tree off, from `root` on if this warp has it. run(node, index) is called by each lane that has taken one, and
  /// stops() by one from time to time: whether the run was cancelled.
  template <class Run, class Stops>
  FLYWHEEL_TASK void operator()(const Entry* root, Run&& run, Stops&& stops) {
    if (P::lane() == 0) {
      *size_word_ = root ? 1 : 0;  // plain, as the entry: converge() orders them
      if (root) *ring_ = *root;
    }
    size_ = root ? 1 : 0;
    P::converge();
    for (bool works = root; works || find(stops); works = false) {
      do {
        while (size_)
          if (!step(run, stops)) return;
      } while (takes_back());
      if (P::lane() == 0) leave();
    }
  }

  /// One thread, in a node: it is to run for `count` further indices. False if there is no room.
  FLYWHEEL_TASK bool push(const Node& node, std::uint32_t count) {
    // Relaxed: pairs with the other lanes', and with the load in step() behind converge(), which also orders the entry.
    const std::uint32_t place = P::block(*size_word_).fetch_add(1, Order::relaxed);
    if (place >= Shape::kRing) return false;
    at(place) = {node, 0, count};
    return true;
  }

  /// A node has failed: all warps stop. Relaxed: pairs with the loads in goes_on() and seek_chunk(); only the bit counts.
  FLYWHEEL_TASK void stop() const { P::device(memory_.words->looking.value).set(kTreeStops, Order::relaxed); }

  /// Whether no chunk was left for the nodes of a ring.
  FLYWHEEL_TASK bool is_full() const { return is_full_; }

 private:
  static constexpr std::uint32_t kMail = kNoChunk - 1;
  static constexpr std::uint32_t kRoundsToLook = 4;     // until the next look whether others look for work
  static constexpr std::uint32_t kLooksToAsk = 64;      // of those, until stops() is asked
  static constexpr std::uint32_t kMostGivenAtOnce = 4;  // chunks

  FLYWHEEL_TASK static std::uint32_t from_leader(std::uint32_t value) { return P::word_of_lanes(&value, 0); }
  FLYWHEEL_TASK WaitContext wait() const { return Views<Leader>{dev_}.wait(worker_); }
  FLYWHEEL_TASK Entry& at(std::uint32_t place) const {
    const std::uint32_t i = first_ + place;
    return ring_[i < Shape::kRing ? i : i - Shape::kRing];
  }

  /// The leading lane: the warp has no work any more. Release and acquire: `active` pairs with itself, here and in seek(), so
  /// that the last warp's change of `pending` comes after those by which the others have given chunks away. What nodes wrote
  /// is for who comes after the next boundary.
  FLYWHEEL_TASK void leave() const {
    if (P::block(mail_.active).fetch_add(~0u, Order::acq_rel) == 1) add_pending(~std::uint64_t{0});
  }

  /// Takes nodes, runs them, and sees to the room for the next ones. False if the tree stops.
  template <class Run, class Stops>
  FLYWHEEL_TASK bool step(Run&& run, Stops&& stops) {
    const Taken taken = take();
    if (taken.there) run(taken.node, taken.index);
    P::converge();
    // Relaxed: pairs with the lanes' adds in push(), before converge().
    const std::uint32_t size = P::block(*size_word_).load(Order::relaxed);
    size_ = size < Shape::kRing ? size : Shape::kRing;
    while (size_ > Shape::kRing / 2)
      if (!put_away()) break;
    if (room() == 0) {
      is_full_ = true;
      stop();
    }
    return goes_on(stops);
  }
  /// Nodes that the ring has room for when they spawn.
  FLYWHEEL_TASK std::uint32_t room() const { return (Shape::kRing - size_) / Type::kMostSpawns; }

  /// Takes the newest node out of the ring, for all lanes.
  FLYWHEEL_TASK Taken take_one() {
    Entry& newest = at(size_ - 1);
    const std::uint32_t count = newest.count;
    const Taken taken{newest.node, newest.first + count - 1, true};
    P::converge();  // all have read
    if (count > 1 && P::lane() == 0) newest.count = count - 1;
    if (count == 1) --size_;
    set_size();
    return taken;
  }
  /// Takes the newest nodes out of the ring, one for each lane.
  FLYWHEEL_TASK Taken take() {
    if constexpr (kAtOnce == 1) return room() ? take_one() : Taken{};
    // Lane l looks at the entry that is l behind the newest; how many nodes it and those before it have, up to those wanted.
    const bool mine = P::lane() < size_;
    Entry& own = at(mine ? size_ - 1 - P::lane() : 0);
    const std::uint32_t has = mine ? own.count : 0, given = has < kAtOnce ? has : kAtOnce;
    const std::uint32_t sum = sum_up_to(given);
    const std::uint32_t all = P::word_of_lanes(&sum, P::lanes() - 1), room_for = room();
    std::uint32_t n = all < kAtOnce ? all : kAtOnce;
    if (n > room_for) n = room_for;
    // Lane j gets node j of them: of the first entry whose sum is above j.
    const std::uint32_t j = P::lane();
    std::uint32_t e = 0;
    for (std::uint32_t width = P::lanes() / 2; width; width /= 2) {
      const std::uint32_t below = P::word_of_lanes(&sum, e + width - 1);
      if (below <= j) e += width;
    }
    const std::uint32_t before = P::word_of_lanes(&sum, e ? e - 1 : 0), start = e ? before : 0;
    Taken taken{};
    taken.there = j < n;
    if (taken.there) {
      const Entry& entry = at(size_ - 1 - e);
      taken.node = entry.node;
      taken.index = entry.first + entry.count - 1 - (j - start);
    }
    P::converge();                           // all have read
    const std::uint32_t from = sum - given;  // what those before have
    const std::uint32_t takes = n <= from ? 0 : n - from < given ? n - from : given;
    const bool is_empty = mine && takes == has;
    if (takes && !is_empty) own.count = has - takes;
    size_ -= count_bits(P::votes(is_empty));
    set_size();
    return taken;
  }
  /// The sum of the values of lanes 0 to the calling one.
  FLYWHEEL_TASK static std::uint32_t sum_up_to(std::uint32_t value) {
    for (std::uint32_t width = 1; width < P::lanes(); width *= 2) {
      const std::uint32_t other = P::word_of_lanes(&value, P::lane() >= width ? P::lane() - width : 0);
      value += P::lane() >= width ? other : 0;
    }
    return value;
  }
  /// Plain: between two meetings of the lanes.
  FLYWHEEL_TASK void set_size() const {
    if (P::lane() == 0) *size_word_ = size_;
    P::converge();
  }

  // ---- chunks ----

  /// Word i of a chunk: how many entries, the chunk below in a list, the entries. Relaxed, both: they pair with each other on
  /// this warp, or on another, to which the queue of ready chunks has released them.
  FLYWHEEL_TASK void put_word(std::uint32_t id, std::uint32_t i, std::uint32_t word) const {
    P::device(memory_.chunks[std::size_t{id} * Shape::kChunkWords + i]).store(word, Order::relaxed);
  }
  FLYWHEEL_TASK std::uint32_t word_of(std::uint32_t id, std::uint32_t i) const {
    return P::device(memory_.chunks[std::size_t{id} * Shape::kChunkWords + i]).load(Order::relaxed);  // relaxed: see put_word()
  }
  FLYWHEEL_TASK void put_entry(std::uint32_t id, std::uint32_t e, const Entry& entry) const {
    std::uint32_t words[Shape::kEntryWords];
    memcpy(words, &entry, sizeof words);
    for_constants<Shape::kEntryWords>(
        [&](auto w) { put_word(id, Shape::kHeaderWords + e * Shape::kEntryWords + w, words[w]); });
  }
  /// A free chunk, or kNoChunk.
  FLYWHEEL_TASK std::uint32_t free_chunk() {
    if (spare_ != kNoChunk) {
      const std::uint32_t id = spare_;
      spare_ = kNoChunk;
      return id;
    }
    std::uint64_t item = kNoChunk;
    const Queue<Leader> free = memory_.free<Leader>();
    if (P::lane() == 0 && !(free.size_hint() && free.pop(1, &item, wait()))) item = kNoChunk;
    return from_leader(static_cast<std::uint32_t>(item));
  }
  FLYWHEEL_TASK void give_back(std::uint32_t id) {
    if (spare_ == kNoChunk) spare_ = id;
    else if (P::lane() == 0)
      memory_.free<Leader>().push(
          1, [&](std::uint32_t) { return id; }, wait());
  }

  /// Moves the n oldest entries of the ring to a chunk.
  FLYWHEEL_TASK void move_oldest(std::uint32_t n, std::uint32_t id) {
    for (std::uint32_t e = P::lane(); e < n; e += P::lanes()) put_entry(id, e, at(e));
    if (P::lane() == 0) put_word(id, 0, n);
    P::converge();  // the leading lane releases what all wrote
    drop_oldest(n);
  }
  FLYWHEEL_TASK void drop_oldest(std::uint32_t n) {
    first_ = first_ + n < Shape::kRing ? first_ + n : first_ + n - Shape::kRing;
    size_ -= n;
    set_size();
  }
  /// Fills the empty ring from a chunk, which is free then.
  FLYWHEEL_TASK void load(std::uint32_t id) {
    const std::uint32_t n = word_of(id, 0);
    first_ = 0;
    for (std::uint32_t e = P::lane(); e < n; e += P::lanes()) {
      std::uint32_t words[Shape::kEntryWords];
      for_constants<Shape::kEntryWords>(
          [&](auto w) { words[w] = word_of(id, Shape::kHeaderWords + e * Shape::kEntryWords + w); });
      memcpy(&at(e), words, sizeof words);
    }
    size_ = n;
    P::converge();  // all have read the size that was
    set_size();
    give_back(id);
  }

  /// Puts the oldest nodes of the ring into the warp's own list. False if no chunk is free.
  FLYWHEEL_TASK bool put_away() {
    const std::uint32_t id = free_chunk();
    if (id == kNoChunk) return false;
    if (P::lane() == 0) put_word(id, 1, list_);
    move_oldest(Shape::kChunk, id);
    list_ = id;
    return true;
  }
  /// Takes the newest chunk of the list back. False if there is none.
  FLYWHEEL_TASK bool takes_back() {
    if (list_ == kNoChunk) return false;
    load(pop_list());
    return true;
  }
  FLYWHEEL_TASK std::uint32_t pop_list() {
    const std::uint32_t id = list_;
    list_ = word_of(id, 1);
    return id;
  }

  // ---- giving and finding ----

  /// From time to time: gives work to those who look for some. False if the tree stops.
  template <class Stops>
  FLYWHEEL_TASK bool goes_on(Stops&& stops) {
    if (++rounds_ % 2 == 0) give_mail();
    if (rounds_ % kRoundsToLook) return true;
    const std::uint32_t looking = from_leader(seen_);
    // Relaxed: pairs with seek_chunk(); a hint, which is used at the next look, when it has come.
    if (P::lane() == 0) seen_ = P::device(memory_.words->looking.value).load(Order::relaxed);
    if (looking & kTreeStops) {
      if (P::lane() == 0) P::block(mail_.over).store(1, Order::relaxed);  // relaxed: pairs with look(); only the bit counts
      return false;
    }
    if (rounds_ % (kRoundsToLook * kLooksToAsk) == 0 && P::lane() == 0) {
      if (stops()) stop();
      show_progress<Leader>(dev_, worker_);
    }
    if (looking) give(looking);
    return true;
  }
  /// Gives chunks away while more warps look for one than there are.
  FLYWHEEL_TASK void give(std::uint32_t looking) {
    const std::uint32_t ready = from_leader(P::lane() == 0 ? memory_.ready<Leader>().size_hint() : 0);
    for (std::uint32_t given = ready; given < looking && given < ready + kMostGivenAtOnce; ++given)
      if (!give_one()) return;
  }
  FLYWHEEL_TASK bool give_one() {
    if (list_ != kNoChunk) {
      push_ready(pop_list());
      return true;
    }
    if (has_few()) return false;
    const std::uint32_t id = free_chunk();
    if (id == kNoChunk) return false;
    const std::uint32_t n =
        size_ > 1 ? give_half(Shape::kChunk, [&](std::uint32_t e, const Entry& entry) { put_entry(id, e, entry); })
                  : give_half_of_only([&](const Entry& entry) { put_entry(id, 0, entry); });
    if (P::lane() == 0) put_word(id, 0, n);
    P::converge();  // the leading lane releases what all wrote
    push_ready(id);
    return true;
  }
  /// Whether the ring has no more nodes than the warp runs at once: others would not be faster with them.
  FLYWHEEL_TASK bool has_few() const {
    if (size_ > kAtOnce) return false;
    const std::uint32_t has = P::lane() < size_ ? at(P::lane()).count : 0;
    const std::uint32_t sum = sum_up_to(has < kAtOnce + 1 ? has : kAtOnce + 1);
    return P::word_of_lanes(&sum, P::lanes() - 1) <= kAtOnce;
  }
  /// Gives every other one of the oldest entries away, at most `most`: so both sides have large subtrees. put(e, entry) takes
  /// the e-th. Returns how many.
  template <class Put>
  FLYWHEEL_TASK std::uint32_t give_half(std::uint32_t most, Put&& put) {
    const std::uint32_t n = size_ / 2 < most ? size_ / 2 : most;
    for (std::uint32_t e = P::lane(); e < n; e += P::lanes()) put(e, at(2 * e));
    // The others close up, from the newest on: entry 2 e + 1 becomes n + e, which is no source of those that follow.
    for (std::uint32_t end = (n + P::lanes() - 1) / P::lanes() * P::lanes(); end; end -= P::lanes()) {
      const std::uint32_t e = end - P::lanes() + P::lane();
      const Entry kept = at(e < n ? 2 * e + 1 : 0);
      P::converge();  // all have read
      if (e < n) at(n + e) = kept;
    }
    P::converge();  // each sees what the others have moved
    drop_oldest(n);
    return n;
  }
  /// The same of the only entry: half of its indices.
  template <class Put>
  FLYWHEEL_TASK std::uint32_t give_half_of_only(Put&& put) {
    Entry half = at(0);
    half.count /= 2;
    P::converge();  // all have read
    if (P::lane() == 0) {
      put(half);
      at(0).first += half.count;
      at(0).count -= half.count;
    }
    P::converge();  // all see the rest
    return 1;
  }

  // ---- mail ----

  /// Gives nodes to a warp of the worker that has none, if the mail is empty.
  FLYWHEEL_TASK void give_mail() {
    if (kWarps == 1) return;
    // Relaxed, both: hints that pair with look() and take_mail(); the exchange below decides.
    const bool wanted = P::lane() == 0 && P::block(mail_.looking).load(Order::relaxed) &&
                        P::block(mail_.state).load(Order::relaxed) == Mail::kEmpty;
    if (!from_leader(wanted) || has_few()) return;
    // Acquire: pairs with the release in take_mail(). The entries that were there are read.
    const bool mine = P::lane() == 0 && P::block(mail_.state).compare_exchange(Mail::kEmpty, Mail::kHeld, Order::acquire);
    if (!from_leader(mine)) return;
    P::converge();  // passes on what the leading lane has acquired
    const std::uint32_t n =
        size_ > 1 ? give_half(Mail::kEntries, [&](std::uint32_t e, const Entry& entry) { mail_.entries[e] = entry; })
                  : give_half_of_only([&](const Entry& entry) { mail_.entries[0] = entry; });
    P::converge();  // the leading lane releases what all wrote
    if (P::lane() != 0) return;
    mail_.count = n;
    // Relaxed: pairs with leave(); this warp is active, and whoever takes the mail has acquired it.
    P::block(mail_.active).fetch_add(1, Order::relaxed);
    P::block(mail_.state).store(Mail::kFull, Order::release);  // release: pairs with the exchange in has_mail()
  }
  /// The leading lane: takes the mail if it is full. Acquire: pairs with the release in give_mail().
  FLYWHEEL_TASK bool has_mail() const {
    return P::block(mail_.state).load(Order::relaxed) == Mail::kFull &&  // relaxed: a hint
           P::block(mail_.state).compare_exchange(Mail::kFull, Mail::kHeld, Order::acquire);
  }
  /// Fills the empty ring from the mail, which the leading lane holds.
  FLYWHEEL_TASK void take_mail() {
    const std::uint32_t n = mail_.count;  // plain: acquired by the leading lane
    first_ = 0;
    for (std::uint32_t e = P::lane(); e < n; e += P::lanes()) at(e) = mail_.entries[e];
    size_ = n;
    P::converge();  // all have read
    set_size();
    // Release: pairs with the acquire in give_mail().
    if (P::lane() == 0) P::block(mail_.state).store(Mail::kEmpty, Order::release);
  }

  FLYWHEEL_TASK void push_ready(std::uint32_t id) const {
    P::converge();  // all have read what they need of it: another warp may fill it anew
    if (P::lane() != 0) return;
    add_pending(1);  // before the release in push()
    memory_.ready<Leader>().push(
        1, [&](std::uint32_t) { return id; }, wait());
  }

  /// A warp without work: waits for mail, or for a chunk that another worker gives away. False if the tree is over, or stops.
  template <class Stops>
  FLYWHEEL_TASK bool find(Stops&& stops) {
    std::uint32_t id = kNoChunk;
    if (P::lane() == 0) id = look(stops);
    id = from_leader(id);
    P::converge();  // passes on what the leading lane has acquired
    if (id == kNoChunk) return false;
    if (id == kMail) take_mail();
    else load(id);
    return true;
  }
  /// The leading lane: a chunk, or kMail.
  template <class Stops>
  FLYWHEEL_TASK std::uint32_t look(Stops&& stops) const {
    constexpr std::uint32_t kPollsOfMail = 4;  // then another warp of this worker will hardly have enough for two soon
    // Relaxed, all: `looking` and `active` are hints, `over` pairs with seek() and goes_on(), and `seeks` only keeps others
    // from the queue; has_mail() acquires, and so does pop() in seek_chunk().
    P::block(mail_.looking).fetch_add(1, Order::relaxed);
    std::uint32_t id = kMail;
    for (std::uint32_t polls = 1; !has_mail(); ++polls) {
      if (P::block(mail_.over).load(Order::relaxed)) return kNoChunk;
      const bool seeks = polls > kPollsOfMail || P::block(mail_.active).load(Order::relaxed) == 0;
      if (seeks && P::block(mail_.seeks).compare_exchange(0, 1, Order::relaxed)) {
        id = seek(stops);
        P::block(mail_.seeks).store(0, Order::relaxed);
        break;
      }
      P::doze(polls);
    }
    P::block(mail_.looking).fetch_add(~0u, Order::relaxed);
    return id;
  }
  /// The leading lane of one warp of a worker: a chunk that another worker has given away, kMail if mail comes first, or
  /// kNoChunk if the tree is over.
  template <class Stops>
  FLYWHEEL_TASK std::uint32_t seek(Stops&& stops) const {
    const std::uint32_t id = seek_chunk(stops);
    if (id == kNoChunk) P::block(mail_.over).store(1, Order::relaxed);  // relaxed: pairs with look(); only the bit counts
    // Release and acquire: pairs with leave(). A worker that was active counts in `pending` once, not for the chunk as well.
    else if (id != kMail && P::block(mail_.active).fetch_add(1, Order::acq_rel) != 0) add_pending(~std::uint64_t{0});
    return id;
  }
  template <class Stops>
  FLYWHEEL_TASK std::uint32_t seek_chunk(Stops&& stops) const {
    constexpr std::uint32_t kPollsToOver = 4;  // until the next look whether the tree is over
    TreeWords& words = *memory_.words;
    const Queue<Leader> ready = memory_.ready<Leader>();
    std::uint64_t item = kNoChunk;
    // Relaxed, all: `looking` pairs with goes_on(), a hint and a bit; `pending` with its changes, see tree_memory.hpp.
    P::device(words.looking.value).add(1, Order::relaxed);
    for (std::uint32_t polls = 1; !(ready.size_hint() && ready.pop(1, &item, wait())); ++polls) {
      if (has_mail()) {
        item = kMail;
        break;
      }
      if (polls % kPollsToOver == 0) {
        const std::uint64_t pending = P::device(words.pending.value).load(Order::relaxed);
        const std::uint32_t looking = P::device(words.looking.value).load(Order::relaxed);
        if (pending == 0 || looking & kTreeStops) return kNoChunk;
      }
      if (polls % kLooksToAsk == 0 && stops()) stop();
      P::doze(polls);  // many workers look at the same words
    }
    P::device(words.looking.value).add(~0u, Order::relaxed);
    return static_cast<std::uint32_t>(item);
  }
  /// Relaxed: see tree_memory.hpp.
  FLYWHEEL_TASK void add_pending(std::uint64_t count) const {
    P::device(memory_.words->pending.value).add(count, Order::relaxed);
  }

  const DeviceState& dev_;
  const TreeMemory& memory_;
  const std::uint32_t worker_;
  Mail& mail_;
  std::uint32_t* const size_word_;  // of the ring, while nodes run; in front of it
  Entry* const ring_;
  // The same in all lanes, but for seen_.
  std::uint32_t first_ = 0, size_ = 0;  // the oldest entry of the ring, and how many there are
  std::uint32_t list_ = kNoChunk;       // the newest chunk of the warp's own list
  std::uint32_t spare_ = kNoChunk;
  std::uint32_t rounds_ = 0;
  std::uint32_t seen_ = 0;  // of the leading lane: who looked for work, at the last look
  bool is_full_ = false;
};

}  // namespace flywheel::detail
