"""The check of words finds each kind of fault, and nothing in a good tree."""
import os
import tempfile
import unittest

from word_rules import GLOSSARY, LIST, word_faults

PAGE = "# Words\n\n## Glossary\n\n| term | what it is | where |\n|---|---|---|\n| idle slot | a place | [a](a.hpp) |\n"


class WordRules(unittest.TestCase):
    def found(self, code, listed="struct int wake", page=PAGE):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {GLOSSARY: page, LIST: listed + "\n", "runtime/base/slot.hpp": code}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return word_faults(root)

    def check_one(self, found, word):
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_good(self):
        self.assertEqual(self.found("struct IdleSlot { int wake; };  // porch\n"), [])

    def test_a_strange_word(self):
        self.check_one(self.found("struct IdleSlot { int wake, porch; };\n"), "'porch' is neither")

    def test_a_term_without_a_use(self):
        self.check_one(self.found("struct Idle { int wake; };\nstruct Slot {};\n"), "'idle slot' is in the glossary")

    def test_a_listed_word_without_a_use(self):
        self.check_one(self.found("struct IdleSlot { int wake; };\n", "struct int wake porch"), "'porch' is in no identifier")
