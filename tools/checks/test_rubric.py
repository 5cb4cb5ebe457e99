"""Each row of the style table can fail: a clean tree is full in all, and what is planted takes its own row down."""
import unittest
from unittest import mock

import concurrency_rules
import proof_rules
from planted_tree import PlantedTree
from rubric import judge

README = """# A library
<!-- quote: apps/hello/main.cu -->
```cpp
/*   ,-> b -.
 *  a        >-> d
 *   `-> c -'      */
#include <flywheel/flywheel.hpp>
int main() {}
```
"""
JOURNEY = """<!-- journey -->

| | file | what happens there |
|---|---|---|
| 1 | [host/api/run](api/run.cpp) | one thing |
| 2 | [runtime/base/ring](../runtime/base/ring.hpp) | another |

<!-- /journey -->
"""
STATUS = """enum class Status : unsigned {
  ok = 0,
  lost = 1,
};
constexpr StatusText describe(Status status) {
  switch (status) {
    case Status::ok: return {"ok", ""};
    case Status::lost: return {"it is lost", "look " "elsewhere"};
  }
}
"""
FULL = {
    "README.md": README,
    "host/README.md": JOURNEY,
    "runtime/base/status.hpp": STATUS,
    "tests/journey/check": "",
    "tests/simulate/planted": "",
    "tests/support/tsan.supp": "",
    "tests/runtime/test_mutations.cpp": "",
    "tests/compile_fail/task_without_body.cpp": "",
    "tests/runtime/test_status.cpp": '#include "runtime/base/ring.hpp"\n#include "device/worker.cuh"\n',
    "tests/host/test_run.cpp": "",
    "tests/apps/test_hello.cpp": '#include "apps/hello/text.hpp"\n',
    "tools/layer_check": "",
    ".ci/run": "",
}
EXPLAINED = """// Relaxed: pairs with store_count(); only the sum matters.
std::uint32_t load_count() { return count.load(std::memory_order_relaxed); }

void give() {
  // Release, block scope: pairs with the test of `full`; covers the slot.
  ptx::mbarrier_arrive(full);
  if (n) {
    __syncwarp();  // all lanes see it
  }
}
"""

# What is planted, in which file, and the row that it takes down.
SHORT = [
    ("a second header for submitters", "host/include/flywheel/more.hpp", "#pragma once\n", "front door"),
    ("a file that the journey enters again", "host/README.md",
     JOURNEY.replace("runtime/base/ring](", "host/api/run]("), "straight line"),
    ("a leak", "runtime/base/a.hpp", "#include <vector>\n", "layering"),
    ("a device function in host/", "host/api/a.cpp", "__device__ int f() { return 1; }\n", "host and device apart"),
    ("a launch bound in host/", "host/api/a.cpp", "__launch_bounds__(1) int f();\n", "host and device apart"),
    ("a large file", "host/api/a.cpp", "\n" * 501, "size of files"),
    ("a long function", "host/api/a.cpp", "void f() {\n" + "  g();\n" * 90 + "}\n", "size of functions"),
    ("an order without a comment", "host/api/a.cpp", "int f() { return n.load(std::memory_order_acquire); }\n",
     "concurrency in prose"),
    ("a call that nobody checks", "host/api/a.cpp", "void f(void* p) { cudaFree(p); }\n", "failure"),
    ("a spin that nothing bounds", "host/api/a.cpp",
     "// Relaxed: only a hint.\nvoid f() { while (n.load(std::memory_order_relaxed)) {} }\n", "failure"),
    ("a header without a test", "host/api/lonely.hpp", "struct Lonely {};\n", "proof"),
    ("an app that checks nothing", "apps/02_more/main.cu", "int main() { return 0; }\n", "proof"),
    ("a macro with arguments", "host/api/a.cpp", "#define F(x) x\n", "quiet"),
]

UNEXPLAINED = [
    ("no comment at all", "void f() {\n  n.store(1, Order::release);\n}\n"),
    ("a comment that names no order", "void f() {\n  // This pairs with g().\n  n.store(1, Order::release);\n}\n"),
    ("a comment that names another order", "void f() {\n  // Acquire: pairs with g().\n  n.store(1, Order::release);\n}\n"),
    ("a comment that gives no reason", "void f() {\n  // Release.\n  n.store(1, Order::release);\n}\n"),
    ("a comment of another function", "// Release: pairs with h().\nvoid g() {}\n\nvoid f() {\n  n.store(1, Order::release);\n}\n"),
    ("a comment of another kind", "void f() {\n  // All of it is done before the release of the slot.\n  n.store(1, Order::relaxed);\n}\n"),
    ("a barrier whose comment says nothing", "void f() {\n  __syncwarp();  // the warp\n}\n"),
    ("no order", "void f() {\n  // Relaxed: only a hint.\n  return n.load();\n}\n"),
    ("an arrival", "void f() {\n  ptx::mbarrier_arrive(full);\n}\n"),
    ("a fence", "void f() {\n  P::release_fence();\n}\n"),
    ("a barrier of a warp", "void f() {\n  __syncwarp();\n}\n"),
    ("PTX", 'void f() {\n  asm volatile("fence.acq_rel.gpu;" ::: "memory");\n}\n'),
]


class Rubric(PlantedTree):
    def setUp(self):
        super().setUp()
        table = mock.patch.object(proof_rules, "TESTED_IN", {})
        table.start()
        self.addCleanup(table.stop)
        for path, text in FULL.items():
            self.plant(path, text)

    def short(self):
        return [judged.name for judged in judge(self.root) if any(row.value > row.limit for row in judged.rows)]

    def test_clean_tree(self):
        self.assertEqual(self.short(), [])

    def test_what_takes_a_row_down(self):
        for what, path, text, row in SHORT:
            with self.subTest(what):
                self.setUp()
                if path == "host/README.md":
                    self.replace(path, text)
                else:
                    self.plant(path, text)
                self.assertIn(row, self.short())
                named = [judged.places for judged in judge(self.root) if judged.name == row]
                self.assertTrue(named[0] or row.startswith("size") or row == "quiet", "the place is not named")

    def replace(self, path, text):
        with open(f"{self.root}/{path}", "w", encoding="utf-8") as target:
            target.write(text)

    def test_a_program_of_more_than_25_lines(self):
        self.replace("README.md", README.replace("int main() {}", "int main() {\n" + "  f();\n" * 25 + "}"))
        self.assertEqual(self.short(), ["front door"])

    def test_a_program_without_its_picture(self):
        self.replace("README.md", README.replace("->", "  "))
        self.assertEqual(self.short(), ["front door"])

    def test_a_status_without_remedy(self):
        self.replace("runtime/base/status.hpp", STATUS.replace('"look " "elsewhere"', '""'))
        self.assertEqual(self.short(), ["failure"])

    def test_a_status_that_is_not_described(self):
        self.replace("runtime/base/status.hpp", STATUS.replace("lost = 1,", "lost = 1,\n  late = 2,"))
        self.assertEqual(self.short(), ["failure"])

    def test_a_row_about_a_header_that_is_gone(self):
        with mock.patch.object(proof_rules, "TESTED_IN", {"host/api/gone.hpp": "tests/host/test_run.cpp"}):
            self.assertEqual(self.short(), ["proof"])


class Concurrency(PlantedTree):
    def sites(self, text):
        return list(concurrency_rules.sites("host/api/a.cpp", text))

    def test_explained(self):
        found = self.sites(EXPLAINED)
        self.assertEqual([(site.line, site.what) for site in found],
                         [(2, "memory_order_relaxed"), (6, "mbarrier_arrive"), (8, "__syncwarp")])
        self.assertTrue(all(site.explained for site in found))

    def test_unexplained(self):
        for what, text in UNEXPLAINED:
            with self.subTest(what):
                self.assertEqual([site.explained for site in self.sites(text)], [False])

    def test_what_is_no_site(self):
        self.assertEqual(self.sites("enum class Order { relaxed };\nvoid fence();\nauto o = Order::relaxed;\n// Order::release\n"), [])


if __name__ == "__main__":
    unittest.main()
