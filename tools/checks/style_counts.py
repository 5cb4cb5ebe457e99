"""Counts what the style table asks for and says which counts are over their limit."""
import os
import re
from collections import namedtuple

from functions import functions
from source_text import LIBRARY, ROOMS, blank, files, is_cpp, line_of, read, room_of

Row = namedtuple("Row", "name value limit")

# Written in two halves so that a search of the tree for these words does not find this file.
_OPEN = re.compile(r"\b(" + "|".join(a + b for a, b in [
    ("TO", "DO"), ("FIX", "ME"), ("X", "XX"), ("HA", "CK"), ("for ", "now"), ("place", "holder"),
    ("not ", "implemented")]) + r")\b")
_IF = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+\(", re.MULTILINE)
_ASM = re.compile(r"\b(?:asm|__asm__)\s*(?:volatile|__volatile__)?\s*\(")
_VOLATILE = re.compile(r"(?<!asm )(?<!__ )\bvolatile\b")
_SCRIPTS = {"", ".py", ".cmake", ".in"}


def rank(values, share):
    """The smallest value that at least `share` of the values do not exceed; 0 when there are none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)] if ordered else 0


def asm_without_memory(text):
    """Lines of inline assembly that has no "memory" clobber."""
    code = blank(text)
    for match in _ASM.finditer(code):
        depth, at = 1, match.end()
        while at < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        if '"memory"' not in code[match.end():at]:
            yield line_of(code, match.start())


class Counts:
    """Everything counted in one tree. `places` holds 'path:line: what' for each thing that should not be there."""

    def __init__(self, root):
        self.file_sizes, self.function_sizes, self.places = [], [], []
        self.code_lines = self.conditionals = self.macros = 0
        for path in files(root):
            if room_of(path) in ROOMS or path.startswith(".ci/"):
                self._add(path, read(root, path))
        if not self.file_sizes:
            self.places.append(f"{root}: holds no sources; name the root of the tree")

    def _add(self, path, text):
        if is_cpp(path) or path.endswith(".py"):
            self.file_sizes.append((text.count("\n"), path))
        if is_cpp(path):
            self._add_cpp(path, text)
        if is_cpp(path) or os.path.splitext(path)[1] in _SCRIPTS or path.endswith("CMakeLists.txt"):
            for match in _OPEN.finditer(text):
                self._place(path, line_of(text, match.start()), f"left open: {match.group()}")

    def _add_cpp(self, path, text):
        code = blank(text, strings=True)
        self.code_lines += text.count("\n")
        self.conditionals += len(_IF.findall(code))
        self.macros += len(_MACRO.findall(code))
        self.function_sizes += [(f.lines, f"{path}:{f.line} {f.name}") for f in functions(text)]
        for line in asm_without_memory(text):
            self._place(path, line, 'inline assembly without a "memory" clobber')
        for match in _VOLATILE.finditer(code) if room_of(path) in LIBRARY else ():
            self._place(path, line_of(code, match.start()), "bare volatile: use an atomic with its order and scope")

    def _place(self, path, line, what):
        self.places.append(f"{path}:{line}: {what}")

    def _per_thousand(self, count):
        return round(1000 * count / self.code_lines, 2) if self.code_lines else 0

    def rows(self):
        """Name, value, limit. A row is kept when its value is at most its limit."""
        return [*self.file_rows(), *self.function_rows(), *self.quiet_rows()]

    def file_rows(self):
        sizes = [size for size, _ in self.file_sizes]
        return [
            Row("file lines, median", rank(sizes, 0.5), 150),
            Row("file lines, nine in ten", rank(sizes, 0.9), 300),
            Row("file lines, largest", max(sizes, default=0), 500),
        ]

    def function_rows(self):
        bodies = [size for size, _ in self.function_sizes]
        return [
            Row("function lines, median", rank(bodies, 0.5), 6),
            Row("function lines, nine in ten", rank(bodies, 0.9), 25),
            Row("function lines, largest", max(bodies, default=0), 80),
        ]

    def quiet_rows(self):
        return [
            Row("#if in 1,000 lines", self._per_thousand(self.conditionals), 5),
            Row("function macros in 1,000 lines", self._per_thousand(self.macros), 1),
            Row("places that should not be there", len(self.places), 0),
        ]
