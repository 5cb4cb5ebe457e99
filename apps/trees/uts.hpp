// The trees of the Unbalanced Tree Search benchmark (Olivier et al., LCPC 2006): a node is the SHA-1 digest of its parent's and
// of its own index among the children, and its digest says how many children it has. Sizes and depths are published, so a count
// shows whether a node was lost or ran twice. The rules and the eight trees are those of its version 2.1.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cmath>
#include <cstdint>
#include <string_view>

namespace trees {

enum class UtsKind : std::uint32_t { geometric, binomial, hybrid };
/// How the expected number of children of a geometric tree changes on the way down.
enum class UtsForm : std::uint32_t { linear, cyclic, fixed };

/// A tree, and what is published of it.
struct UtsTree {
  const char* name;
  UtsKind kind;
  UtsForm form;
  std::uint32_t depth;  // of geometric trees, by their form
  double root_children;
  double inner;  // binomial trees: the share of nodes with children
  std::uint32_t children, seed;
  std::uint64_t nodes, leaves;
  std::uint32_t deepest;
};

inline const UtsTree kUtsTrees[] = {
    {"T1", UtsKind::geometric, UtsForm::fixed, 10, 4, 0, 0, 19, 4'130'071, 3'305'118, 10},
    {"T2", UtsKind::geometric, UtsForm::cyclic, 16, 6, 0, 0, 502, 4'117'769, 2'342'762, 81},
    {"T3", UtsKind::binomial, UtsForm::linear, 0, 2000, 0.124875, 8, 42, 4'112'897, 3'599'034, 1572},
    {"T4", UtsKind::hybrid, UtsForm::linear, 16, 6, 0.234375, 4, 1, 4'132'453, 3'108'986, 134},
    {"T5", UtsKind::geometric, UtsForm::linear, 20, 4, 0, 0, 34, 4'147'582, 2'181'318, 20},
    {"T1L", UtsKind::geometric, UtsForm::fixed, 13, 4, 0, 0, 29, 102'181'082, 81'746'377, 13},
    {"T2L", UtsKind::geometric, UtsForm::cyclic, 23, 7, 0, 0, 220, 96'793'510, 53'791'152, 67},
    {"T3L", UtsKind::binomial, UtsForm::linear, 0, 2000, 0.200014, 5, 7, 111'345'631, 89'076'904, 17844},
};

/// The tree of that name, which there is.
inline const UtsTree& uts_tree(std::string_view name) {
  const UtsTree* tree = kUtsTrees;
  while (name != tree->name) ++tree;
  return *tree;
}

struct Digest {
  std::uint32_t words[5];
};

FLYWHEEL_TASK inline std::uint32_t rotated(std::uint32_t x, int by) { return x << by | x >> (32 - by); }

/// SHA-1 (FIPS 180-4) of a message that is one block.
FLYWHEEL_TASK inline Digest sha1(std::uint32_t (&w)[16]) {
  std::uint32_t a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u, e = 0xc3d2e1f0u;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int t = 0; t < 80; ++t) {
    if (t >= 16) w[t % 16] = rotated(w[(t + 13) % 16] ^ w[(t + 8) % 16] ^ w[(t + 2) % 16] ^ w[t % 16], 1);
    const std::uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    const std::uint32_t k = t < 20 ? 0x5a827999u : t < 40 ? 0x6ed9eba1u : t < 60 ? 0x8f1bbcdcu : 0xca62c1d6u;
    const std::uint32_t next = rotated(a, 5) + f + e + k + w[t % 16];
    e = d, d = c, c = rotated(b, 30), b = a, a = next;
  }
  return {{a + 0x67452301u, b + 0xefcdab89u, c + 0x98badcfeu, d + 0x10325476u, e + 0xc3d2e1f0u}};
}
/// Of 16 bytes of 0 and the seed.
FLYWHEEL_TASK inline Digest root_digest(std::uint32_t seed) {
  std::uint32_t w[16] = {0, 0, 0, 0, seed, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 160};
  return sha1(w);
}
/// Of the parent's digest and an index.
FLYWHEEL_TASK inline Digest child_digest(const Digest& parent, std::uint32_t index) {
  const std::uint32_t* p = parent.words;
  std::uint32_t w[16] = {p[0], p[1], p[2], p[3], p[4], index, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 192};
  return sha1(w);
}

/// What says how many children a node has, in memory that the workers see.
struct UtsRule {
  static constexpr std::uint32_t kMostLevels = 128;
  UtsKind kind;
  std::uint32_t depth, children;
  double root_children, inner;
  // Of geometric trees: the logarithm of the share of nodes that have one child more, given that they have so many; 0: none.
  double log_of[kMostLevels];

  explicit UtsRule(const UtsTree& tree)
      : kind(tree.kind),
        depth(tree.depth),
        children(tree.children),
        root_children(tree.root_children),
        inner(tree.inner) {
    for (std::uint32_t level = 0; level < kMostLevels; ++level) log_of[level] = log_at(tree, level);
  }
  UtsRule() = default;

  FLYWHEEL_TASK bool is_binomial_at(std::uint32_t level) const {
    return kind == UtsKind::binomial || (kind == UtsKind::hybrid && 2 * level >= depth);
  }
  FLYWHEEL_TASK std::uint32_t children_of(const Digest& node, std::uint32_t level) const {
    constexpr std::uint32_t kMost = 100;  // but for the root of a binomial tree
    const double drawn = (node.words[4] & 0x7fffffffu) / 2147483648.0;
    if (kind == UtsKind::binomial && level == 0) return static_cast<std::uint32_t>(root_children);
    if (is_binomial_at(level)) return drawn < inner ? children : 0;
    const double log_here = level < kMostLevels ? log_of[level] : 0;
    if (log_here == 0) return 0;
    const auto count = static_cast<std::uint32_t>(floor(log(1 - drawn) / log_here));
    return count < kMost ? count : kMost;
  }

 private:
  static double log_at(const UtsTree& tree, std::uint32_t level) {
    constexpr double kPi = 3.141592653589793;
    double expected = tree.root_children;
    if (level && tree.form == UtsForm::fixed) expected = level < tree.depth ? expected : 0;
    else if (level && tree.form == UtsForm::cyclic)
      expected = level > 5 * tree.depth ? 0 : std::pow(expected, std::sin(2 * kPi * level / tree.depth));
    else if (level && tree.form == UtsForm::linear) expected *= 1 - static_cast<double>(level) / tree.depth;
    return expected > 0 ? std::log(1 - 1 / (1 + expected)) : 0;
  }
};

/// What the nodes below one come to.
struct UtsCount {
  std::uint64_t nodes = 0;
  std::uint32_t leaves = 0, deepest = 0;
};

/// A child of the node with this digest: which one, its index says. Level 0: the root, with its own digest.
struct UtsNode {
  using Grain = flywheel::Thread;
  static constexpr std::uint32_t kMostSpawns = 1;
  const UtsRule* rule;
  Digest parent;
  std::uint32_t level;

  template <class Block>
  FLYWHEEL_TASK UtsCount operator()(Block& block) const {
    const Digest own = level ? child_digest(parent, block.index()) : parent;
    const std::uint32_t children = rule->children_of(own, level);
    block.spawn_n(UtsNode{rule, own, level + 1}, children);
    return {1, children == 0, level};
  }
  FLYWHEEL_TASK static UtsCount combine(const UtsCount& a, const UtsCount& b) {
    return {a.nodes + b.nodes, a.leaves + b.leaves, a.deepest > b.deepest ? a.deepest : b.deepest};
  }
};

}  // namespace trees
