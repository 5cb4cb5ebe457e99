// What load() reads of one task of a graph: a view, made from the lists of a TaskStore.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <typeindex>
#include <vector>

#include "../../runtime/records/task.hpp"
#include "chunk_list.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kAnyWorker = 0xffffffffu;
inline constexpr std::uint32_t kNoGang = 0xffffffffu;

/// A piece of memory that a task names in `dependents()`. Runtime::load() checks it.
struct DependentPiece {
  const void* pointer;
  std::uint32_t bytes;
};

/// A buffer that a task type names in its `buffers()` member. Runtime::load() checks it.
struct BufferArgument {
  std::uint32_t task;
  const char* name;
  const void* pointer;
};

/// What only some tasks have, most of it for compiled graphs.
struct TaskAttributes {
  std::uint32_t worker = kAnyWorker;  // the worker chosen by Graph::place()
  std::uint32_t gang = kNoGang;       // its index in Graph::gangs()
  std::uint32_t operand_bytes = 0;    // in the operand stream, see runtime/compiled/operands.hpp
  std::uint32_t dependent_pages = 0;
  bool early = false;               // its roles begin before its predecessors have ended
  double cost_ns = 0;               // what its type's cost_ns() says; 0 if it has none
  std::size_t first_dependent = 0;  // its pieces are [first_dependent, end_of_dependents) of all pieces of the graph
  std::size_t end_of_dependents = 0;
};

/// A predecessor that Graph::edge() named after other tasks had been added.
struct LateEdge {
  std::uint32_t before;
  std::uint32_t next;  // position + 1 of the next late edge to the same task; 0: the last one
};

/// The predecessors of a task, in the order in which they were named. One that was named twice is here twice.
class Predecessors {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::uint32_t*;
    using reference = const std::uint32_t&;

    Iterator() = default;
    Iterator(const ChunkList<std::uint32_t>& named, std::uint32_t at, std::uint32_t end, const ChunkList<LateEdge>& late,
             std::uint32_t next)
        : named_(&named),
          late_(&late),
          at_(at),
          end_(end),
          next_(next) {}
    reference operator*() const { return at_ != end_ ? (*named_)[at_] : (*late_)[next_ - 1].before; }
    Iterator& operator++() {
      if (at_ != end_) ++at_;
      else next_ = (*late_)[next_ - 1].next;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_ && next_ == other.next_; }

   private:
    const ChunkList<std::uint32_t>* named_ = nullptr;
    const ChunkList<LateEdge>* late_ = nullptr;
    std::uint32_t at_ = 0, end_ = 0, next_ = 0;
  };

  /// Those at [first, end) of `named`, then the late ones from `first_late` on.
  Predecessors(const ChunkList<std::uint32_t>& named, std::uint32_t first, std::uint32_t end, const ChunkList<LateEdge>& late,
               std::uint32_t first_late)
      : named_(&named),
        first_(first),
        end_(end),
        late_(&late),
        first_late_(first_late) {}
  Iterator begin() const { return {*named_, first_, end_, *late_, first_late_}; }
  Iterator end() const { return {*named_, end_, end_, *late_, 0}; }
  bool empty() const { return first_ == end_ && !first_late_; }
  bool operator==(const std::vector<std::uint32_t>& tasks) const {
    return std::equal(begin(), end(), tasks.begin(), tasks.end());
  }

 private:
  const ChunkList<std::uint32_t>* named_;  // by add(), or by edge() while the task was the last one
  std::uint32_t first_, end_;
  const ChunkList<LateEdge>* late_;
  std::uint32_t first_late_;
};

/// A task before its graph is loaded. Valid until the graph changes.
struct GraphNode : TaskAttributes {
  std::type_index type;
  std::span<const unsigned char> args;  // the bytes of its type, rounded up
  std::uint32_t result_offset;
  Priority priority;
  bool grid;
  std::uint32_t phase;
  Predecessors predecessors;
  std::span<const DependentPiece> dependents;
  std::uint32_t stage;  // its index in Graph::stages()
};

}  // namespace flywheel::detail
