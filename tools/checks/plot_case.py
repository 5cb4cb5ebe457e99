"""What the tests of tools that draw results share."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

_TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _TOOLS)

import result_plots  # noqa: E402  (found through the path set above)

SVG = "{http://www.w3.org/2000/svg}"


def load_tool(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(_TOOLS, name))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(tool)
    return tool


class PlotCase(unittest.TestCase):
    """A folder of results, drawn by the `tool` that a derived class names."""

    tool = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)

    def write(self, rows, name="gpu.json"):
        (self.results / name).write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")

    def draw(self, check=False):
        return result_plots.update(self.tool.__name__, self.tool.drawings(self.results), check)

    def run_it(self, check=False):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            return self.draw(check), said.getvalue()

    def tree(self, name):
        return xml.etree.ElementTree.parse(self.results / name).getroot()

    def marks(self, tree, name):
        return [one for one in tree.iter() if one.get("class") == name]

    def check_stale_and_missing(self, rows, picture):
        self.write(rows)
        self.assertEqual(self.run_it(check=True)[0], 1)
        self.assertFalse((self.results / picture).exists())
        self.run_it()
        self.assertEqual(self.run_it(check=True)[0], 0)
        self.write(rows[1:])
        code, said = self.run_it(check=True)
        self.assertEqual(code, 1)
        self.assertIn(picture, said)

    def check_faults(self, row_of_zero):
        self.write([row_of_zero])
        with self.assertRaisesRegex(result_plots.Problem, "Measure again"):
            self.draw()
        (self.results / "gpu.json").write_text("half a ro\n", encoding="utf-8")
        with self.assertRaisesRegex(result_plots.Problem, "line 1.*Mend or delete"):
            self.draw()

    def check_no_results(self):
        self.assertEqual(self.run_it(check=True)[0], 0)
        self.assertEqual(self.run_it()[0], 0)

    def check_ticks(self, *spans):
        for low, high in spans:
            ticks = result_plots.LogAxis([low, high], 0, 100, self.tool.MOST_TICKS).ticks()
            self.assertTrue(1 <= len(ticks) <= 8, (low, high, ticks))
            self.assertEqual(ticks, sorted(ticks))
