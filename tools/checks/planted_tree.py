"""A small clean tree in a temporary folder, into which a test plants what a check has to find."""
import os
import tempfile
import unittest

CLEAN = {
    "CMakeLists.txt": "project(Flywheel)\n",
    "runtime/base/ring.hpp": "#pragma once\n#include <cstdint>\n#include <cuda/atomic>\n",
    "device/worker.cuh": '#pragma once\n#include <cuda/ptx>\n#include "runtime/base/ring.hpp"\n__global__ void worker();\n',
    "device/include/flywheel/task.cuh": '#include "device/worker.cuh"\n#include "host/futures/run.hpp"\n',
    "host/futures/run.hpp": '#pragma once\n#include <string>\n#include "runtime/base/ring.hpp"\n',
    "host/futures/run.cpp": '#include "host/futures/run.hpp"\n#include <cuda_runtime_api.h>\n#include <spdlog/spdlog.h>\n',
    "host/include/flywheel/flywheel.hpp": '#pragma once\n#include "host/futures/run.hpp"\n',
    "apps/hello/main.cu": "#include <flywheel/flywheel.hpp>\n#include <flywheel/task.cuh>\n#include \"text.hpp\"\n",
    "apps/hello/text.hpp": "#pragma once\n",
    "apps/measure/clock.hpp": "#pragma once\n",
    "tools/probe/main.cpp": '#include "host/futures/run.hpp"\n#include <CLI/CLI.hpp>\n',
}


class PlantedTree(unittest.TestCase):
    """Base of the tests that need a tree: `self.root` is clean until `plant` adds to it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in CLEAN.items():
            self.plant(path, text)

    def plant(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "a", encoding="utf-8") as target:
            target.write(text)
