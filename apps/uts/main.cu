// UTS: the eight published trees of the Unbalanced Tree Search benchmark, with exact counts, and how fast they are searched.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/trees/uts.hpp"

namespace uts {

using trees::UtsCount;
using trees::UtsNode;
using trees::UtsTree;

/// True if the counts are those that are published; prints a line.
bool search(flywheel::Runtime& rt, flywheel::Tree<UtsNode>& search, const UtsTree& tree, int times) {
  const flywheel::Buffer<trees::UtsRule> rule = rt.upload(std::vector<trees::UtsRule>{trees::UtsRule(tree)});
  const UtsNode root{rule.data(), trees::root_digest(tree.seed), 0};
  std::vector<double> seconds;
  UtsCount count;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    count = search(root);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const bool right = count.nodes == tree.nodes && count.leaves == tree.leaves && count.deepest == tree.deepest;
  std::printf("%-4s %10llu nodes, %9u leaves, depth %5u  %s  %9.3f ms  %8.1f M nodes/s\n", tree.name,
              static_cast<unsigned long long>(count.nodes), count.leaves, count.deepest, right ? "as published" : "WRONG",
              1e3 * median, static_cast<double>(count.nodes) / median / 1e6);
  return right;
}

/// `wanted`: the tree of that name; "": all of them, on CPU workers the small ones.
int run(const std::string& wanted) {
  flywheel::Runtime rt = flywheel::start<flywheel::TreeTask<UtsNode>>();
  flywheel::Tree<UtsNode> tree_search(rt);
  const bool on_gpu = rt.workers() > 100;
  bool right = true, any = false;
  for (const UtsTree& tree : trees::kUtsTrees) {
    const bool is_large = tree.nodes > 10'000'000;
    if (wanted.empty() ? is_large && !on_gpu : wanted != tree.name) continue;
    right &= search(rt, tree_search, tree, on_gpu ? 9 : 1);
    any = true;
  }
  if (!any)
    std::fprintf(stderr, "there is no tree '%s': name one of T1 to T5, T1L, T2L and T3L, or none for all\n", wanted.c_str());
  return right && any ? 0 : 1;
}

}  // namespace uts

int main(int argc, char** argv) {
  try {
    return uts::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uts: %s\n", error.what());
    return 1;
  }
}
