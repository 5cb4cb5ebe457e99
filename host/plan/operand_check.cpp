#include "operand_check.hpp"

#include <limits>

#include "../../runtime/compiled/operands.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

namespace {
constexpr std::uint32_t kCopied = 16;  // bytes: copies need pointers and sizes that are multiples of it

/// Checks the operands of one task.
class OperandCheck {
 public:
  OperandCheck(const Graph& graph, std::uint32_t task) : graph_(graph), node_(graph.nodes()[task]), task_(task) {}

  void operator()() const {
    check_size(node_.operand_bytes);
    check_count();
    for (std::size_t piece = 0; piece < node_.dependents.size(); ++piece) check_piece(piece);
    check_pages();
  }

 private:
  /// Sizes are rounded up to whole pages in 32 bits, so this is the largest size that does not overflow.
  void check_size(std::uint32_t bytes) const {
    constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max() / kPageBytes * kPageBytes;
    if (bytes > kMost)
      throw CapacityError(name() + " has " + std::to_string(bytes) + " bytes of operands in one piece, and " +
                          std::to_string(kMost) + " is the most: split the task");
  }
  void check_count() const {
    if (node_.dependents.size() > kMostDependents)
      throw CapacityError(name() + " names " + std::to_string(node_.dependents.size()) + " pieces in dependents(), and " +
                          std::to_string(kMostDependents) + " is the most: put them side by side, or split the task");
  }
  void check_piece(std::size_t piece) const {
    const auto [pointer, bytes] = node_.dependents[piece];
    check_size(bytes);
    const std::string which = name() + ", piece " + std::to_string(piece) + " of its dependents(): ";
    if (bytes && !pointer) throw UsageError(which + "the pointer is null. Allocate it with Runtime::allocate() first.");
    if (reinterpret_cast<std::uintptr_t>(pointer) % kCopied)
      throw UsageError(which +
                       "the pointer is not a multiple of 16 bytes. Begin the piece where a buffer begins, or a "
                       "multiple of 16 bytes behind that.");
    if (bytes % kCopied)
      throw UsageError(which + "its size, " + std::to_string(bytes) +
                       " bytes, is not a multiple of 16. Round it up, and allocate as much.");
  }
  void check_pages() const {
    std::uint64_t pages = 0;
    for (const DependentPiece& piece : node_.dependents) pages += pages_of(piece.bytes);
    if (pages != node_.dependent_pages)
      throw UsageError(name() + " names " + std::to_string(pages) + " pages in dependents(), and its dependent_pages() says " +
                       std::to_string(node_.dependent_pages) + ". Add up pages_of() each piece there.");
  }
  std::string name() const { return name_of(graph_, task_); }

  const Graph& graph_;
  const GraphNode node_;
  std::uint32_t task_;
};
}  // namespace

void check_operands(const Graph& graph) {
  if (!graph.tasks().has_attributes()) return;
  for (std::uint32_t task = 0; task < graph.size(); ++task) OperandCheck(graph, task)();
}

}  // namespace flywheel::detail
