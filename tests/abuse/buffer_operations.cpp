// Buffers: of any size, copied to and from in any way, moved, dropped; also after their runtime.
#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
std::shared_ptr<BufferCase> some_buffer(Actor& actor) { return actor.stage.buffers.get(actor.dice.below(kBuffers)); }

void check_contents(BufferCase& one) {
  tries(*one.fate, "read()", [&] {
    if (one.buffer.size() != one.shadow.size()) finding("a buffer has another size");
    if (one.shadow.empty() && !one.buffer.data()) return;
    if (one.buffer.read() != one.shadow) finding("a buffer holds something else");
  });
}

void write_some(Actor& actor, BufferCase& one) {
  const auto size = static_cast<std::uint32_t>(one.shadow.size());
  const std::uint32_t at = actor.dice.below(size + 1), count = actor.dice.below(size - at + 1);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(actor.dice.next());
  // A failing engine may have refused the copy, or not.
  if (!tries(*one.fate, "write()", [&] { one.buffer.write(values.data(), count, at); })) return;
  std::copy(values.begin(), values.end(), one.shadow.begin() + at);
}
}  // namespace

void allocate(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  const std::uint32_t size = actor.dice.of({0u, 1u, 63u, 64u, 65u, 1000u, 20'000u});
  auto one = std::make_shared<BufferCase>();
  one->fate = room->fate;
  actor.journal.note(" %u of %u", size, room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  const bool uploads = actor.dice.one_in(3);
  if (uploads)
    for (std::uint32_t i = 0; i < size; ++i) one->shadow.push_back(static_cast<std::uint32_t>(actor.dice.next()));
  else one->shadow.assign(size, 0);
  const bool done = tries(*room->fate, "allocate()", [&] {
    one->buffer = uploads ? room->runtime.upload(one->shadow) : room->runtime.allocate<std::uint32_t>(size);
  });
  if (!done) return;
  check_contents(*one);
  actor.stage.buffers.put(actor.dice.below(kBuffers), std::move(one));
}

void allocate_too_much(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  const std::size_t many = actor.dice.of({std::size_t{1} << 50, std::size_t{1} << 60, ~std::size_t{0} >> 3, ~std::size_t{0}});
  actor.journal.note(" %zu of %u", many, room->fate->number);
  refuses_or_excused<CapacityError>(*room->fate, "allocate()", {"Options"}, [&] {
    if (actor.dice.one_in(2)) room->runtime.allocate<char>(many);
    else room->runtime.allocate<double>(many);
  });
}

void copy_buffer(Actor& actor) {
  const auto one = some_buffer(actor);
  if (!one) return;
  std::scoped_lock lock(one->mutex);
  if (!one->buffer.data()) return;
  if (actor.dice.one_in(2)) write_some(actor, *one);
  check_contents(*one);
}

void copy_badly(Actor& actor) {
  Buffer<std::uint32_t> empty;
  std::uint32_t words[4] = {};
  refuses<UsageError>("read() of an empty buffer", {"empty buffer"}, [&] { empty.read(words, 1); });
  refuses<UsageError>("write() to an empty buffer", {"empty buffer"}, [&] { empty.write(words, 0); });
  const auto one = some_buffer(actor);
  if (!one) return;
  std::scoped_lock lock(one->mutex);
  if (!one->buffer.data()) return;
  const std::size_t size = one->buffer.size(), most = ~std::size_t{0};
  refuses<UsageError>("write() beyond the end", {"check position and count"}, [&] { one->buffer.write(words, 4, size - 3); });
  refuses<UsageError>("read() beyond all", {"check position and count"}, [&] { one->buffer.read(words, 1, most); });
  refuses<UsageError>("read() of too many", {"check position and count"},
                      [&] { one->buffer.read(words, most, actor.dice.below(3)); });
  refuses<UsageError>("read() to nowhere", {"null host pointer"}, [&] { one->buffer.read(nullptr, 1); });
  refuses<UsageError>("write() from nowhere", {"null host pointer"}, [&] { one->buffer.write(nullptr, 1); });
}

void move_buffer(Actor& actor) {
  const auto one = some_buffer(actor), other = some_buffer(actor);
  if (!one) return;
  std::scoped_lock lock(one->mutex);
  Buffer<std::uint32_t>& alias = one->buffer;
  one->buffer = std::move(alias);  // to itself
  check_contents(*one);
  Buffer<std::uint32_t> taken(std::move(one->buffer));
  if (one->buffer.data() || one->buffer.size()) finding("a buffer that was moved from holds something");
  refuses<UsageError>("read() of a moved buffer", {"empty buffer"}, [&] { one->buffer.write(one->shadow); });
  one->buffer = std::move(taken);
  check_contents(*one);
  if (!other || other == one || !other->mutex.try_lock()) return;
  other->buffer = std::move(one->buffer);  // what was there goes
  other->shadow = std::move(one->shadow);
  other->fate = one->fate;
  one->shadow.clear();
  other->mutex.unlock();
}

void drop_buffer(Actor& actor) { actor.stage.buffers.put(actor.dice.below(kBuffers), nullptr); }

}  // namespace flywheel::abuse
