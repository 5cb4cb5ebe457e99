"""The compile-fail check accepts only a refusal that says the promised sentence."""
import contextlib
import io
import sys

from compile_fail import main
from planted_tree import PlantedTree

REFUSES = [sys.executable, "-c", "print('error: a task must be\\n  copyable'); raise SystemExit(1)"]
ACCEPTS = [sys.executable, "-c", "print('a task must be copyable')"]


class CompileFail(PlantedTree):
    def status(self, first_line, compiler):
        self.plant("case.cpp", first_line + "\n")
        with contextlib.redirect_stdout(io.StringIO()):
            return main([self.root + "/case.cpp", "--", *compiler])

    def test_refused_with_the_sentence(self):
        self.assertEqual(self.status("// expect: task must be cop[iy]able", REFUSES), 0)

    def test_refused_for_another_reason(self):
        self.assertEqual(self.status("// expect: graph has a cycle", REFUSES), 1)

    def test_compiles(self):
        self.assertEqual(self.status("// expect: a task must be copyable", ACCEPTS), 1)

    def test_promises_nothing(self):
        self.assertEqual(self.status("// a file", REFUSES), 2)
