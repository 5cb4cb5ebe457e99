"""The layer check finds each kind of leak, and nothing in a clean tree."""
import unittest

from layer_rules import leaks
from planted_tree import PlantedTree

LEAKS = [
    ("runtime includes host", "runtime/base/a.hpp", '#include "host/futures/run.hpp"\n'),
    ("runtime includes device by a relative path", "runtime/base/a.hpp", '#include "../../device/worker.cuh"\n'),
    ("runtime includes the toolkit", "runtime/base/a.hpp", "#include <cuda_runtime.h>\n"),
    ("runtime includes a container", "runtime/base/a.hpp", "#include <vector>\n"),
    ("runtime includes a package", "runtime/base/a.hpp", "#include <fmt/core.h>\n"),
    ("runtime calls CUDA", "runtime/base/a.hpp", "inline void f() { cudaDeviceSynchronize(); }\n"),
    ("runtime makes a thread", "runtime/base/a.hpp", "std::jthread pump;\n"),
    ("runtime allocates with new", "runtime/base/a.hpp", "int* p = new int[4];\n"),
    ("runtime allocates with malloc", "runtime/base/a.hpp", "void* p = malloc(4);\n"),
    ("runtime has a source file", "runtime/base/a.cpp", "\n"),
    ("device includes host", "device/a.cuh", '#include "host/futures/run.hpp"\n'),
    ("device includes the host's public header", "device/a.cuh", "#include <flywheel/flywheel.hpp>\n"),
    ("host includes device", "host/api/a.cpp", '#  include "device/worker.cuh"\n'),
    ("host includes the device's public header", "host/api/a.hpp", "#include <flywheel/task.cuh>\n"),
    ("a host header includes a package", "host/api/a.hpp", "#include <spdlog/spdlog.h>\n"),
    ("a host header includes the CUDA API", "host/api/a.hpp", "#include <cuda_runtime_api.h>\n"),
    ("host launches", "host/api/a.cpp", "void f() { worker<<<1, 1>>>(); }\n"),
    ("host holds a .cu", "host/api/a.cu", "\n"),
    ("an app includes an inner header", "apps/hello/a.cpp", '#include "runtime/base/ring.hpp"\n'),
    ("an app includes another app", "apps/bye/a.cpp", '#include "../hello/text.hpp"\n'),
    ("a tool includes device", "tools/probe/a.cpp", '#include "device/worker.cuh"\n'),
    ("a second kernel", "device/a.cuh", "__global__ void second();\n"),
    ("a stranger at the top level", "docs/a.md", "\n"),
    ("a merge that was not finished", "tests/README.md", "<" * 7 + " HEAD\n"),
    ("runtime has a file in no room", "runtime/a.hpp", "\n"),
    ("host has a room that no rule names", "host/attic/a.hpp", "\n"),
    ("runtime includes a later room", "runtime/base/a.hpp", '#include "runtime/poller/inbox_poller.hpp"\n'),
    ("host includes a later room by a relative path", "host/plan/a.hpp", '#include "../futures/run.hpp"\n'),
    ("an app's room includes a later one", "apps/llama/checkpoint/a.hpp", '#include "apps/llama/tuned/graph.hpp"\n'),
    ("a submitter gets the scheduler", "host/futures/run.hpp", '#include "runtime/dynamic/worker.hpp"\n'),
    ("a submitter gets the device state", "host/futures/run.hpp", '#include "runtime/records/device_state.hpp"\n'),
    ("a header names who does not include it", "device/a.cuh", "// A header. worker.cuh includes it.\n"),
    ("device includes CPU workers", "device/a.cuh", '#include "runtime/cpu/executor.hpp"\n'),
]

CLEAN = [
    ("a comment that names a leak", "runtime/base/a.hpp", '// #include "host/futures/run.hpp", new int, std::thread\n'),
    ("a string that names a leak", "host/api/a.cpp", 'auto s = "worker<<<1, 1>>>";\n'),
    ("placement new", "runtime/base/a.hpp", "inline void f(void* p) { ::new (p) int(3); }\n"),
    ("a deleted copy", "runtime/base/a.hpp", "struct A { A(const A&) = delete; };\n"),
    ("a header named for CUDA", "host/engine/cuda_api.hpp", "#include <cuda_runtime_api.h>\n"),
    ("a dot-file at the top", ".clang-format", "\n"),
    ("an app's own folder by its full path", "apps/hello/a.cpp", '#include "apps/hello/text.hpp"\n'),
    ("an app includes a library of apps", "apps/hello/a.cpp", '#include "apps/measure/clock.hpp"\n'),
    ("a later room includes an earlier one", "host/api/b.hpp", '#include "host/base/error.hpp"\n'),
    ("an app's room includes an earlier one", "apps/llama/tuned/a.hpp", '#include "apps/llama/checkpoint/config.hpp"\n'),
    ("host includes CPU workers", "host/engine/a.cpp", '#include "runtime/cpu/executor.hpp"\n'),
    ("tests include anything", "tests/host/test_a.cu", '#include "device/worker.cuh"\n#include "host/futures/run.hpp"\n'),
]


class LayerRules(PlantedTree):
    def test_clean_tree(self):
        self.assertEqual(leaks(self.root), [])

    def test_no_tree_at_all(self):
        self.assertEqual(len(leaks(self.root + "/apps")), 1)
        self.assertEqual(len(leaks(self.root + "/nowhere")), 1)


    def test_a_crowded_room(self):
        for n in range(15):
            self.plant(f"runtime/base/a{n}.hpp", "\n")
        self.assertEqual(leaks(self.root), [])
        self.plant("runtime/base/b.hpp", "\n")
        self.assertEqual(len(leaks(self.root)), 1)

    def test_a_long_chain(self):
        for n in range(1, 8):
            self.plant(f"host/plan/a{n}.hpp", f'#include "host/plan/a{n - 1}.hpp"\n')
        self.plant("host/plan/a0.hpp", '#include "host/plan/a1.hpp"\n')  # and one that comes back
        self.assertEqual(leaks(self.root), [])
        self.plant("host/plan/a8.hpp", '#include "a7.hpp"\n')
        self.assertEqual(len(leaks(self.root)), 1)


def _finds(path, text, count):
    def test(self):
        self.plant(path, text)
        found = leaks(self.root)
        self.assertEqual(len(found), count, found)
        self.assertTrue(all(path.split("/")[0] in line for line in found), found)
    return test


for cases, expected in ((LEAKS, 1), (CLEAN, 0)):
    for title, place, planted in cases:
        setattr(LayerRules, "test_" + title.replace(" ", "_"), _finds(place, planted, expected))

if __name__ == "__main__":
    unittest.main()
