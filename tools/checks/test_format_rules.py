"""The check of formats finds each kind of fault, and nothing in a good tree."""
import os
import tempfile
import unittest

from format_rules import find_formatter, fix, format_faults

STYLE = "BasedOnStyle: Google\nColumnLimit: 100\nReflowComments: false\n"


@unittest.skipUnless(find_formatter(), "there is no clang-format of the version asked for")
class FormatRules(unittest.TestCase):
    def found(self, code, mended=False):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {".clang-format": STYLE, "runtime/slot.hpp": code}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            if mended:
                fix(root, find_formatter())
            return format_faults(root, find_formatter())

    def test_good(self):
        self.assertEqual(self.found("int slot;\n"), [])

    def test_another_format(self):
        code = "int slot;\nint  other ;\n"
        found = self.found(code)
        self.assertEqual(len(found), 1, found)
        self.assertIn("runtime/slot.hpp:2: is not as", found[0])
        self.assertEqual(self.found(code, mended=True), [])

    def test_a_long_comment(self):
        found = self.found("int slot;\n// " + "x" * 98 + "\n")
        self.assertEqual(len(found), 1, found)
        self.assertIn("runtime/slot.hpp:2: is 101 characters", found[0])

    def test_a_long_expectation(self):
        self.assertEqual(self.found("// expect: " + "x" * 98 + "\n"), [])


if __name__ == "__main__":
    unittest.main()
