"""What tools/plot_serve and tools/plot_taskbench share: results files, axes, parts of an SVG, and the command line."""
import argparse
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape


class Problem(Exception):
    """Something the person at the keyboard has to mend; the message says how."""


def read_rows(path):
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except ValueError as error:
            raise Problem(f"{path}, line {number}: no JSON object ({error}). Mend or delete the line.") from error
    return rows


class LogAxis:
    """Maps values to places between two ends, logarithmically, and chooses at most `most` round numbers for its ticks."""

    def __init__(self, values, begin, end, most):
        self.low, self.high = min(values) / 1.25, max(values) * 1.25
        self.begin, self.end, self.most = begin, end, most

    def place(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self):
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [step * 10.0 ** decade for decade in decades for step in steps if self.low <= step * 10.0 ** decade <= self.high]
            if len(ticks) <= self.most:
                break
        return ticks


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y}" {more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, name):
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{name}"/>'


def polyline(places, name, colour):
    return f'<polyline points="{" ".join(f"{x},{y}" for x, y in places)}" class="{name}" stroke="{colour}"/>'


def where_and_when(rows):
    """The GPUs and drivers of the rows, and the last date."""
    where = " ".join(sorted({row["gpu"] for row in rows})) + "".join(sorted({f", driver {row['driver']}" for row in rows if row["driver"]}))
    return f"{where}, {max(row['date'] for row in rows)}"


_STYLE = """text { font: 13px sans-serif; fill: #222 } .title { font-size: 15px } .head { text-anchor: middle; font-weight: bold }
.middle { text-anchor: middle } .left { text-anchor: end } .frame { fill: none; stroke: #222 } .grid { stroke: #ddd }
"""


def svg(width, height, style, parts):
    """A picture of that size, in SVG units, which are pixels at first sight. `style` comes on top of what all pictures have."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
                      f"<style>{_STYLE}{style}</style>", f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>", ""])


def update(tool, drawings, check):
    """Writes each (path, SVG) of `drawings` whose file is another one; with `check` it only tells them, and returns 1 if any is."""
    stale = []
    for path, fresh in drawings:
        if path.exists() and path.read_text(encoding="utf-8") == fresh:
            continue
        stale.append(path)
        if not check:
            path.write_text(fresh, encoding="utf-8")
            print(f"{tool}: wrote {path}")
    for path in stale if check else []:
        print(f"{tool}: {path} is missing or out of date. Run tools/{tool} and commit the result.", file=sys.stderr)
    return 1 if check and stale else 0


def main(tool, program, description, drawings):
    """The command line of a tool that draws the results of apps/<program>: drawings(folder) gives each (path, SVG)."""
    results = pathlib.Path(__file__).resolve().parent.parent / "apps" / program / "results"
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture is out of date")
    parser.add_argument("--results", type=pathlib.Path, default=results, help="the folder of the results")
    try:
        options = parser.parse_args()
        return update(tool, drawings(options.results), options.check)
    except (Problem, KeyError, OSError) as problem:
        print(f"{tool}: {problem}" if isinstance(problem, Problem) else f"{tool}: {problem!r}. Measure again with {program}, or name "
              "the folder with --results", file=sys.stderr)
        return 2
