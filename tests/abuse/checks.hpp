// What must happen, and what may.
#pragma once

#include <string>
#include <vector>

#include "abuse/stage.hpp"

namespace flywheel::abuse {

/// A finding unless the message names each of the words and is long enough to say what to do.
void check_message(const char* action, const std::string& message, const std::vector<std::string>& words);
/// A finding unless the exception is one that a correct call of this runtime may meet: it is shut down, its engine fails, or
/// its memory is used up.
void check_excuse(const Fate& fate, const char* action, const std::exception& error);
/// A finding unless a run may end so.
void check_status(const RunCase& one, Status status);
/// The same for the exception, with its message.
void check_run_error(const RunCase& one, const RunError& error);
/// Of a run that ended well: bodies, results.
void check_success(RunCase& one);

/// `action` must throw an E that says so.
template <class E, class Action>
void refuses(const char* name, const std::vector<std::string>& words, Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return check_message(name, error.what(), words);
  } catch (const std::exception& error) {
    finding(std::string(name) + " throws something else: " + error.what());
  }
  finding(std::string(name) + " throws nothing");
}

/// `action` is right, but may meet a runtime that cannot do it any more. True if it was done.
template <class Action>
bool tries(const Fate& fate, const char* name, Action&& action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    check_excuse(fate, name, error);
  }
  return false;
}

/// The same for a call that is wrong: the refusal of the runtime itself may come first.
template <class E, class Action>
void refuses_or_excused(const Fate& fate, const char* name, const std::vector<std::string>& words, Action&& action) {
  try {
    action();
  } catch (const E& error) {
    for (const std::string& word : words)
      if (std::string(error.what()).find(word) == std::string::npos) return check_excuse(fate, name, error);
    return;
  } catch (const std::exception& error) {
    return check_excuse(fate, name, error);
  }
  finding(std::string(name) + " throws nothing");
}

}  // namespace flywheel::abuse
