"""The pictures of tools/plot_serve are well-formed, have a point for each number, and are told when they are out of date."""
import unittest

from plot_case import SVG, PlotCase, load_tool


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


class PlotServe(PlotCase):
    tool = load_tool("plot_serve")

    def test_points_curves_and_words(self):
        self.write(some_rows())
        self.assertEqual(self.run_it()[0], 0)
        tree = self.tree("gpu.task.20us.svg")
        self.assertEqual(tree.tag, SVG + "svg")
        self.assertEqual(len(self.marks(tree, "point")), 3 * 3 * 4 * 2)  # panels, services, loads, priorities
        self.assertEqual(len(list(tree.iter(SVG + "polyline"))), 3 * 3 * 2)
        hollow = [one for one in self.marks(tree, "point") if one.get("fill") == "white"]
        self.assertEqual(len(hollow), 3 * 3 * 2)
        words = " ".join(one.text for one in tree.iter(SVG + "text"))
        for word in ("p50", "p99", "p99.9", "offered load, requests a second", "latency from the intended arrival", " us",
                     "Flywheel", "high priority", "elsewhere", "gpu<&>", "one task of 20 us"):
            self.assertIn(word, words)
        self.assertEqual(len(self.marks(self.tree("gpu.task.20us.busy.svg"), "point")), 3 * 2)

    def test_points_lie_in_their_panels_and_higher_is_slower(self):
        self.write([row("serve.graph.2us.flywheel.x0.10.normal", 10, 100), row("serve.graph.2us.flywheel.x0.50.normal", 1000, 500)])
        self.run_it()
        tree = self.tree("gpu.graph.2us.svg")
        places = [(float(one.get("cx")), float(one.get("cy"))) for one in self.marks(tree, "point")]
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
        self.assertEqual(len(self.marks(self.tree("gpu.batch.0.5us.svg"), "point")), 3)

    def test_check_tells_stale_and_missing(self):
        self.check_stale_and_missing(some_rows(), "gpu.task.20us.svg")

    def test_faults_have_a_remedy(self):
        self.check_faults(row("serve.task.20us.flywheel.x0.10.high", 0))

    def test_no_results(self):
        self.check_no_results()

    def test_ticks_are_round_and_few(self):
        self.check_ticks((1, 2), (3, 70), (25, 3e6), (1e4, 1e7))


if __name__ == "__main__":
    unittest.main()
