// The requests of a session that are in flight: at most so many of each priority, so that those of normal priority leave room
// to those of high.
#pragma once

#include <utility>
#include <vector>

#include "apps/serve_bench/service.hpp"

namespace serve {

/// Most requests in flight.
struct Window {
  Window(std::uint32_t of_all, std::uint32_t clients)
      : normal(share_of(of_all, clients)),
        high(share_of(of_all / 4, clients)) {}
  std::uint32_t of(Priority priority) const { return priority == Priority::high ? high : normal; }
  std::uint32_t both() const { return normal + high; }

  std::uint32_t normal, high;
};

/// `Ticket` is what a service gives for a request in flight.
template <class Ticket>
class InFlight {
 public:
  explicit InFlight(Window window) : window_(window) { open_.reserve(window.both()); }

  bool has_room(Priority priority) const { return count(priority) < window_.of(priority); }
  void add(const Request& request, Ticket ticket) {
    ++count(request.priority);
    open_.push_back({request, std::move(ticket)});
  }
  /// Calls is_done(ticket) for each, and for those that are value_of(ticket), whose value it appends to the answers.
  template <class IsDone, class ValueOf>
  void take_done(std::vector<Answer>& answers, IsDone&& is_done, ValueOf&& value_of) {
    for (std::size_t i = 0; i < open_.size();) {
      Open& one = open_[i];
      if (!is_done(one.ticket)) {
        ++i;
        continue;
      }
      answers.push_back({one.request, value_of(one.ticket)});
      --count(one.request.priority);
      if (&one != &open_.back()) one = std::move(open_.back());
      open_.pop_back();
    }
  }

 private:
  struct Open {
    Request request;
    Ticket ticket;
  };

  std::uint32_t& count(Priority priority) { return counts_[priority == Priority::high]; }
  std::uint32_t count(Priority priority) const { return counts_[priority == Priority::high]; }

  Window window_;
  std::vector<Open> open_;
  std::uint32_t counts_[2] = {};
};

}  // namespace serve
