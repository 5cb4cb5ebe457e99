// TreeTask, the task type of a tree: what Tree (host/api/tree.hpp) puts into a graph. What it does is in tree.hpp.
#pragma once

#include "tree_memory.hpp"

namespace flywheel {

template <class Node>
struct TreeTask;

namespace detail {
/// The body of a TreeTask; in tree.hpp, which <flywheel/task.cuh> brings.
template <class Node, class Block>
FLYWHEEL_TASK typename NodeType<Node>::Sum run_tree_task(const TreeTask<Node>& task, Block& block);
}  // namespace detail

/// The task type of a tree, for the list of flywheel::start<...>(). Tree makes the tasks.
template <class Node>
struct TreeTask {
  using Sum = typename detail::NodeType<Node>::Sum;

  detail::TreeMemory memory;
  Param<Node> root;
  Param<std::uint32_t> count;  // for so many indices the root runs
  std::uint32_t adds_up;       // 0: works the tree off, as a grid task; 1: adds up what the workers have summed up

  template <class Block>
  FLYWHEEL_TASK Sum operator()(Block& block) const {
    return detail::run_tree_task(*this, block);
  }
};

}  // namespace flywheel
