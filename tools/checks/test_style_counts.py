"""The style check counts right, and each of its rows can fail."""
import unittest

from functions import functions
from planted_tree import PlantedTree
from style_counts import Counts, rank

LONG_BODY = "void f() {\n" + "  g();\n" * 90 + "}\n"
MEMBERS = """
template <class T, class U = std::pair<T, int>>
struct Ring final : Base<T> {
  explicit Ring(int n) : Base<T>{n}, size_{n}, list_({1, 2}) {
    reset();
  }
  static constexpr int kTable[] = {1, 2, 3};
  bool push(T value, Options o = {}) const noexcept { return store({value, '{'}); }
  template <class F>
    requires std::invocable<F>
  auto visit(F f) -> decltype(f()) {
    if (f) {
      return [&] { return f(); }();
    }
#if X
    g("}");
#endif
  }
  Word word{};
  Ring& operator=(const Ring&) = delete;
  T operator()(int i) const { return i; }
};
enum class Kind { a, b };
TEST_CASE("a ring { holds") {
  CHECK(1'000 == f());
}
"""


class Functions(unittest.TestCase):
    def test_finds_members_and_skips_what_only_looks_like_one(self):
        found = [(f.name, f.lines) for f in functions(MEMBERS)]
        self.assertEqual(found, [("Ring", 3), ("push", 1), ("visit", 8), ("operator()", 1), ("TEST_CASE", 3)])

    def test_a_type_after_the_result(self):
        self.assertEqual([f.name for f in functions("struct A f(int x) { return {}; }\nunion B { int b; };\n")], ["f"])


class Rank(unittest.TestCase):
    def test_nearest_rank(self):
        self.assertEqual([rank([3, 1, 2], 0.5), rank(range(1, 11), 0.9), rank([7], 0.9), rank([], 0.5)], [2, 9, 7, 0])


class Rows(PlantedTree):
    def over(self):
        return {row.name for row in Counts(self.root).rows() if row.value > row.limit}

    def test_clean_tree(self):
        self.assertEqual(self.over(), set())

    def test_no_tree_at_all(self):
        self.root += "/nowhere"
        self.assertEqual(self.over(), {"places that should not be there"})

    def test_large_files(self):
        for number in range(12):
            self.plant(f"host/a{number}.hpp", "\n" * 501)
        self.assertEqual(self.over(), {"file lines, median", "file lines, nine in ten", "file lines, largest"})

    def test_long_functions(self):
        self.plant("host/a.cpp", LONG_BODY)
        self.assertEqual(self.over(),
                         {"function lines, median", "function lines, nine in ten", "function lines, largest"})

    def test_conditionals_and_macros(self):
        self.plant("host/a.hpp", "#ifdef A\n#define B(x) x\n#endif\n")
        self.assertEqual(self.over(), {"#if in 1,000 lines", "function macros in 1,000 lines"})

    def test_places(self):
        words = ["TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK", "for " "now", "place" "holder", "not " "implemented"]
        self.plant("host/a.hpp", "".join(f"// {word}\n" for word in words))
        self.plant("tools/script", f"# {words[0]}\n")
        self.plant("device/a.cuh", 'asm volatile("bar;" ::: "memory");\nasm volatile("x;");\nvolatile int v;\n')
        self.plant("apps/hello/play.txt", "Stay " + words[4] + ", gentle words are data here\n")
        self.assertEqual(len(Counts(self.root).places), len(words) + 1 + 2)
        self.assertEqual(self.over(), {"places that should not be there"})


if __name__ == "__main__":
    unittest.main()
