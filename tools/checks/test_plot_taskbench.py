"""The pictures of tools/plot_taskbench are well-formed, have a point for each grain, and are told when they are out of date."""
import unittest

from plot_case import SVG, PlotCase, load_tool
GRAINS = (8, 4, 2, 1, 0.5)


def row(name, time, grain=None):
    numbers = {"grain_us": grain, "iterations": 100, "efficiency": round(grain / time, 4)} if grain else {}
    return {"name": name, "p50": time, "p99": 2 * time, "gpu": "gpu<&>", "driver": "1.2", "date": "2026-11-25", "numbers": numbers}


def some_rows(sweep="stencil_132", systems=("compiled", "levels", "elsewhere")):
    rows = [row(f"grain.{sweep}.{system}.at_{grain:g}us", grain + 1.5, grain) for system in systems for grain in GRAINS]
    return rows + [row(f"grain.{sweep}.compiled.metg", 3.0), row(f"grain.{sweep}.compiled.step", 1.4)]


class PlotTaskbench(PlotCase):
    tool = load_tool("plot_taskbench")

    def test_points_curves_and_words(self):
        self.write(some_rows() + some_rows("fft_132.x4.memory.uniform", ("dynamic",)))
        self.assertEqual(self.run_it()[0], 0)
        tree = self.tree("gpu.stencil_132.svg")
        self.assertEqual(tree.tag, SVG + "svg")
        self.assertEqual(len(self.marks(tree, "point")), 2 * 3 * len(GRAINS))  # panels, systems
        self.assertEqual(len(list(tree.iter(SVG + "polyline"))), 2 * 3)
        self.assertEqual(len(self.marks(tree, "metg")), 1)
        words = " ".join(one.text for one in tree.iter(SVG + "text"))
        for word in ("stencil_132", "efficiency", "compiled, placed, METG 3 us", "a kernel a level", "elsewhere", "gpu<&>", "2026-11-25"):
            self.assertIn(word, words)
        self.assertEqual(len(self.marks(self.tree("gpu.fft_132.x4.memory.uniform.svg"), "point")), 2 * len(GRAINS))

    def test_points_lie_in_their_panels_and_larger_tasks_are_more_efficient(self):
        self.write(some_rows(systems=("compiled",)))
        self.run_it()
        tree = self.tree("gpu.stencil_132.svg")
        places = [(float(one.get("cx")), float(one.get("cy"))) for one in self.marks(tree, "point")]
        frames = self.marks(tree, "frame")
        for at, (x, y) in enumerate(places):
            left, top = (float(frames[at // len(GRAINS)].get(name)) for name in ("x", "y"))
            self.assertTrue(left < x < left + float(frames[0].get("width")))
            self.assertTrue(top < y < top + float(frames[0].get("height")))
        efficiencies = places[:len(GRAINS)]
        self.assertEqual(efficiencies, sorted(efficiencies))
        self.assertEqual([y for _, y in efficiencies], sorted((y for _, y in efficiencies), reverse=True))

    def test_check_tells_stale_and_missing(self):
        self.check_stale_and_missing(some_rows(), "gpu.stencil_132.svg")

    def test_faults_have_a_remedy(self):
        self.check_faults(row("grain.fft_8.compiled.at_1us", 0))

    def test_no_results(self):
        self.check_no_results()

    def test_ticks_are_round_and_few(self):
        self.check_ticks((1, 2), (0.3, 70), (1, 1e5))


if __name__ == "__main__":
    unittest.main()
