#!/usr/bin/env python3
"""Writes apps/llama/checkpoint/tokenizer/unicode_table.hpp: the ranges of \\p{L}, \\p{N} and \\s for the pre-tokenizers.

    python3 tools/make_unicode_table.py

The table follows the Unicode version of the Python that runs this, or of the package unicodedata2 where that
is installed. The tokenizers library 0.23 splits by Unicode 16.0, so unicodedata2 16.0 gives the same classes.
"""
from pathlib import Path

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

OUT = Path(__file__).resolve().parent.parent / "apps/llama/checkpoint/tokenizer/unicode_table.hpp"
# The property White_Space, which has not changed since Unicode 6.3.
SPACES = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
          0x205F, 0x3000]
HEADER = """#pragma once

#include <array>
#include <cstdint>

// Written by tools/make_unicode_table.py from Unicode {version}. Sorted, disjoint ranges of code points.
// clang-format off

namespace flywheel::llama {{

struct CodeRange {{
  std::uint32_t first;
  std::uint32_t last;
}};
"""


def ranges(points):
    found = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def of_category(initial):
    return [point for point in range(0x110000) if unicodedata.category(chr(point))[0] == initial]


def table(name, meaning, points):
    rows = ranges(points)
    text = f"\n// {meaning}\ninline constexpr std::array<CodeRange, {len(rows)}> {name} = {{{{\n"
    line = "   "
    for first, last in rows:
        entry = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(entry) > 110:
            text += line + "\n"
            line = "   "
        line += entry
    return text + line + "\n}};\n"


def main():
    text = HEADER.format(version=unicodedata.unidata_version)
    text += table("kLetters", r"\p{L}", of_category("L"))
    text += table("kNumbers", r"\p{N}", of_category("N"))
    text += table("kSpaces", r"\s", SPACES)
    OUT.write_text(text + "\n}  // namespace flywheel::llama\n")
    print(f"{OUT}: Unicode {unicodedata.unidata_version}")


if __name__ == "__main__":
    main()
