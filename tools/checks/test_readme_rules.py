"""The check of the README finds each kind of fault, and nothing in a good one."""
from planted_tree import PlantedTree
from readme_rules import MUST_QUOTE, faults

PROGRAM = "int main() {\n  return 0;\n}\n"
GOOD = f"""# A library
<!-- quote: {MUST_QUOTE} -->
```cpp
{PROGRAM}```
See [hello]({MUST_QUOTE}), [the second](apps/02_more), [a part](#part) and [elsewhere](https://example.org/nothing.md).
```cpp
auto f = [](int) {{ return g[0](nowhere); }};
```
"""


class ReadmeRules(PlantedTree):
    def found(self, readme):
        self.plant(MUST_QUOTE, PROGRAM)
        self.plant("apps/02_more/main.cu", PROGRAM)
        self.plant("README.md", readme)
        return faults(self.root)

    def check_one(self, readme, word):
        found = self.found(readme)
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_good(self):
        self.assertEqual(self.found(GOOD), [])

    def test_missing(self):
        self.assertEqual(faults(self.root), ["README.md: is not there"])

    def test_a_quote_with_one_space_less(self):
        self.check_one(GOOD.replace("  return 0", " return 0"), "copy the file anew")

    def test_a_quote_that_lacks_its_last_line(self):
        self.check_one(GOOD.replace("}\n```\nSee", "```\nSee"), "copy the file anew")

    def test_no_quote(self):
        self.check_one(GOOD.replace("quote:", "excerpt:"), "does not quote")

    def test_a_mark_without_a_block(self):
        self.check_one(GOOD.replace("```cpp\nint", "int").replace("}\n```\nSee", "}\nSee"), "no fenced block")

    def test_a_quote_of_nothing(self):
        self.check_one(GOOD + "<!-- quote: apps/gone.cu -->\n```cpp\n```\n", "apps/gone.cu, which is not there")

    def test_a_dead_link(self):
        self.check_one(GOOD + "[old](host/gone.hpp#part)\n", "links to host/gone.hpp")

    def test_a_dead_link_of_a_room(self):
        self.plant("host/README.md", "[there](../README.md), [not there](README.txt)\n")
        self.check_one(GOOD, "host/README.md:1: links to README.txt")

    def test_too_long(self):
        self.check_one(GOOD + "\n" * 170, "170 are to be enough")

    def test_an_app_without_a_link(self):
        self.check_one(GOOD.replace("[the second](apps/02_more)", "the second"), "no link to apps/02_more")
