// An atomic access of the running thread: a step of the scheduler, and what it then sees or writes. Thread-local words (shared
// memory of emulated blocks) nobody else sees: access to them is no step.
#pragma once

#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"

namespace flywheel::simulate {

inline bool is_step(const void* word) { return scheduler.on() && !scheduler.is_local(word); }

template <class T>
T load(const volatile T* at, const How& how) {
  const T* word = const_cast<const T*>(at);
  if (!is_step(word)) return *word;
  scheduler.step(Kind::load, how.where);
  return static_cast<T>(memory::load(word, sizeof(T), *word, how));
}

template <class T>
void store(volatile T* at, T value, const How& how) {
  T* word = const_cast<T*>(at);
  const bool steps = is_step(word);
  if (steps) scheduler.step(Kind::store, how.where);
  if (!steps || memory::store(word, sizeof(T), *word, value, how)) *word = value;
}

template <class T, class New>
T update(volatile T* at, const How& how, New value_after) {
  T* word = const_cast<T*>(at);
  const bool steps = is_step(word);
  if (steps) scheduler.step(Kind::update, how.where);
  const T before = *word;
  const T after = value_after(before);
  if (steps) memory::update(word, sizeof(T), before, after, how);
  *word = after;
  return before;
}

/// A failure reads with order `failure`.
template <class T>
bool compare_exchange(volatile T* at, T& expected, T desired, const How& how, int failure) {
  T* word = const_cast<T*>(at);
  const bool steps = is_step(word);
  if (steps) scheduler.step(Kind::update, how.where);
  const T before = *word;
  const T seen = steps ? static_cast<T>(memory::load(word, sizeof(T), before, {failure, how.scope, how.where})) : before;
  if (seen == expected && before == expected) {
    if (steps) memory::update(word, sizeof(T), before, desired, how);
    *word = desired;
    return true;
  }
  expected = seen == expected ? before : seen;
  return false;
}

}  // namespace flywheel::simulate
