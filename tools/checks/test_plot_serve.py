"""The pictures of tools/plot_serve are well-formed, have a point for each number, and are told when they are out of date."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

_PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plot_serve")
_LOADER = importlib.machinery.SourceFileLoader("plot_serve", _PATH)
plot_serve = importlib.util.module_from_spec(importlib.util.spec_from_loader("plot_serve", _LOADER))
_LOADER.exec_module(plot_serve)

SVG = "{http://www.w3.org/2000/svg}"


def row(name, latency=30.0, load=1000.0):
    return {"name": name, "p50": latency, "p99": 2 * latency, "gpu": "gpu<&>", "driver": "1.2", "date": "2026-11-25",
            "numbers": {"p99_9": 3 * latency, "offered_per_s": load}}


def some_rows():
    rows = [row(f"serve.task.20us.{service}.x{fraction:.2f}.{priority}", 30 + 100 * fraction, 1e5 * fraction)
            for service in ("flywheel", "launch", "elsewhere") for fraction in (0.1, 0.5, 1, 2) for priority in ("high", "normal")]
    busy = [row(f"serve.task.20us.flywheel.busy.x0.50.{priority}") for priority in ("high", "normal")]
    others = [row("serve.task.20us.flywheel.sustainable"), row("serve.task.20us.flywheel.alone.x0.05.high"),
              row("serve.task.20us.flywheel.high_excess")]
    return rows + busy + others


class PlotServe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)

    def write(self, rows, name="gpu.json"):
        (self.results / name).write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")

    def run_it(self, check=False):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            return plot_serve.run(self.results, check), said.getvalue()

    def tree(self, name):
        return xml.etree.ElementTree.parse(self.results / name).getroot()

    def points(self, tree):
        return [one for one in tree.iter() if one.get("class") == "point"]

    def test_points_curves_and_words(self):
        self.write(some_rows())
        self.assertEqual(self.run_it()[0], 0)
        tree = self.tree("gpu.task.20us.svg")
        self.assertEqual(tree.tag, SVG + "svg")
        self.assertEqual(len(self.points(tree)), 3 * 3 * 4 * 2)  # panels, services, loads, priorities
        self.assertEqual(len(list(tree.iter(SVG + "polyline"))), 3 * 3 * 2)
        hollow = [one for one in self.points(tree) if one.get("fill") == "white"]
        self.assertEqual(len(hollow), 3 * 3 * 2)
        words = " ".join(one.text for one in tree.iter(SVG + "text"))
        for word in ("p50", "p99", "p99.9", "offered load, requests a second", "latency from the intended arrival", " us",
                     "Flywheel", "high priority", "elsewhere", "gpu<&>", "one task of 20 us"):
            self.assertIn(word, words)
        self.assertEqual(len(self.points(self.tree("gpu.task.20us.busy.svg"))), 3 * 2)

    def test_points_lie_in_their_panels_and_higher_is_slower(self):
        self.write([row("serve.graph.2us.flywheel.x0.10.normal", 10, 100), row("serve.graph.2us.flywheel.x0.50.normal", 1000, 500)])
        self.run_it()
        tree = self.tree("gpu.graph.2us.svg")
        places = [(float(one.get("cx")), float(one.get("cy"))) for one in self.points(tree)]
        frames = [one for one in tree.iter(SVG + "rect") if one.get("class") == "frame"]
        for at, (x, y) in enumerate(places):
            left, top = float(frames[at // 2].get("x")), float(frames[at // 2].get("y"))
            self.assertTrue(left < x < left + float(frames[at // 2].get("width")))
            self.assertTrue(top < y < top + float(frames[at // 2].get("height")))
        self.assertLess(places[1][1], places[0][1])
        self.assertGreater(places[1][0], places[0][0])

    def test_one_point_alone(self):
        self.write([row("serve.batch.0.5us.flywheel.x0.10.normal")])
        self.run_it()
        self.assertEqual(len(self.points(self.tree("gpu.batch.0.5us.svg"))), 3)

    def test_check_tells_stale_and_missing(self):
        self.write(some_rows())
        self.assertEqual(self.run_it(check=True)[0], 1)
        self.assertFalse((self.results / "gpu.task.20us.svg").exists())
        self.run_it()
        self.assertEqual(self.run_it(check=True)[0], 0)
        self.write(some_rows()[1:])
        code, said = self.run_it(check=True)
        self.assertEqual(code, 1)
        self.assertIn("gpu.task.20us.svg", said)

    def test_faults_have_a_remedy(self):
        self.write([row("serve.task.20us.flywheel.x0.10.high", 0)])
        with self.assertRaisesRegex(plot_serve.Problem, "Measure again"):
            plot_serve.run(self.results, False)
        (self.results / "gpu.json").write_text("half a ro\n", encoding="utf-8")
        with self.assertRaisesRegex(plot_serve.Problem, "line 1.*Mend or delete"):
            plot_serve.run(self.results, False)

    def test_no_results(self):
        self.assertEqual(self.run_it(check=True)[0], 0)
        self.assertEqual(self.run_it()[0], 0)

    def test_ticks_are_round_and_few(self):
        for low, high in ((1, 2), (3, 70), (25, 3e6), (1e4, 1e7)):
            ticks = plot_serve.LogAxis([low, high], 0, 100).ticks()
            self.assertTrue(1 <= len(ticks) <= 8, (low, high, ticks))
            self.assertEqual(ticks, sorted(ticks))
            self.assertTrue(all(str(f"{tick:.0e}")[0] in "1235" for tick in ticks))
        self.assertEqual(plot_serve.time_text(1500), "1.5 ms")
        self.assertEqual(plot_serve.time_text(0.5), "0.5 us")
        self.assertEqual(plot_serve.load_text(2e6), "2M")


if __name__ == "__main__":
    unittest.main()
