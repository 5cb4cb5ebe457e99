#include "simulate/scoped.hpp"

#include "simulate/atomics.hpp"

#define FLYWHEEL_HOW(order, scope) \
  How { number_of(order), static_cast<int>(scope), __builtin_return_address(0) }

namespace flywheel::simulate {

namespace {

/// As the C++ library numbers them.
int number_of(Order order) {
  constexpr int kNumbers[] = {0, kAcquire, kRelease, kAcqRel};
  return kNumbers[static_cast<int>(order)];
}

/// Calls f with the word as one of its size.
template <class Word, class F>
auto with_size(Word* word, std::size_t bytes, F&& f) {
  using Void = std::conditional_t<std::is_const_v<Word>, const void, void>;
  Void* const at = word;
  const auto as = [&]<class T>(T) { return static_cast<std::conditional_t<std::is_const_v<Word>, const T, T>*>(at); };
  switch (bytes) {
    case 1:
      return f(as(std::uint8_t{}));
    case 2:
      return f(as(std::uint16_t{}));
    case 4:
      return f(as(std::uint32_t{}));
    default:
      return f(as(std::uint64_t{}));
  }
}

std::uint64_t changed(Change change, std::uint64_t before, std::uint64_t value) {
  switch (change) {
    case Change::exchange:
      return value;
    case Change::add:
      return before + value;
    case Change::set:
      return before | value;
    default:
      return before & value;
  }
}

}  // namespace

std::uint64_t scoped_load(const void* word, std::size_t bytes, Order order, Scope scope) {
  const How how = FLYWHEEL_HOW(order, scope);
  return with_size(word, bytes, [&]<class T>(const T* at) { return std::uint64_t{load<T>(at, how)}; });
}

void scoped_store(void* word, std::size_t bytes, std::uint64_t value, Order order, Scope scope) {
  const How how = FLYWHEEL_HOW(order, scope);
  with_size(word, bytes, [&]<class T>(T* at) { store<T>(at, static_cast<T>(value), how); });
}

std::uint64_t scoped_update(void* word, std::size_t bytes, Change change, std::uint64_t value, Order order, Scope scope) {
  const How how = FLYWHEEL_HOW(order, scope);
  return with_size(word, bytes, [&]<class T>(T* at) {
    return std::uint64_t{update<T>(at, how, [&](T before) { return static_cast<T>(changed(change, before, value)); })};
  });
}

bool scoped_compare_exchange(void* word, std::size_t bytes, std::uint64_t expected, std::uint64_t desired, Order order,
                             Scope scope) {
  const How how = FLYWHEEL_HOW(order, scope);
  return with_size(word, bytes, [&]<class T>(T* at) {
    T wanted = static_cast<T>(expected);
    return compare_exchange<T>(at, wanted, static_cast<T>(desired), how, 0);
  });
}

void scoped_fence(Order order, Scope scope) {
  if (!scheduler.on()) return;
  const How how = FLYWHEEL_HOW(order, scope);
  scheduler.step(Kind::fence, how.where);
  memory::fence(how);
}

}  // namespace flywheel::simulate

#undef FLYWHEEL_HOW
