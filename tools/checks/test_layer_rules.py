"""The layer check finds each kind of leak, and nothing in a clean tree."""
import unittest

from layer_rules import leaks
from planted_tree import PlantedTree

LEAKS = [
    ("runtime includes host", "runtime/a.hpp", '#include "host/run.hpp"\n'),
    ("runtime includes device by a relative path", "runtime/a.hpp", '#include "../device/worker.cuh"\n'),
    ("runtime includes the toolkit", "runtime/a.hpp", "#include <cuda_runtime.h>\n"),
    ("runtime includes a container", "runtime/a.hpp", "#include <vector>\n"),
    ("runtime includes a package", "runtime/a.hpp", "#include <fmt/core.h>\n"),
    ("runtime calls CUDA", "runtime/a.hpp", "inline void f() { cudaDeviceSynchronize(); }\n"),
    ("runtime makes a thread", "runtime/a.hpp", "std::jthread pump;\n"),
    ("runtime allocates with new", "runtime/a.hpp", "int* p = new int[4];\n"),
    ("runtime allocates with malloc", "runtime/a.hpp", "void* p = malloc(4);\n"),
    ("runtime has a source file", "runtime/a.cpp", "\n"),
    ("device includes host", "device/a.cuh", '#include "host/run.hpp"\n'),
    ("device includes the host's public header", "device/a.cuh", "#include <flywheel/flywheel.hpp>\n"),
    ("host includes device", "host/a.cpp", '#  include "device/worker.cuh"\n'),
    ("host includes the device's public header", "host/a.hpp", "#include <flywheel/task.cuh>\n"),
    ("a host header includes a package", "host/a.hpp", "#include <spdlog/spdlog.h>\n"),
    ("a host header includes the CUDA API", "host/a.hpp", "#include <cuda_runtime_api.h>\n"),
    ("host launches", "host/a.cpp", "void f() { worker<<<1, 1>>>(); }\n"),
    ("host holds a .cu", "host/a.cu", "\n"),
    ("an app includes an inner header", "apps/hello/a.cpp", '#include "runtime/ring.hpp"\n'),
    ("an app includes another app", "apps/hello/a.cpp", '#include "../other/part.hpp"\n'),
    ("a tool includes device", "tools/probe/a.cpp", '#include "device/worker.cuh"\n'),
    ("a second kernel", "device/a.cuh", "__global__ void second();\n"),
    ("a stranger at the top level", "docs/a.md", "\n"),
]

CLEAN = [
    ("a comment that names a leak", "runtime/a.hpp", '// #include "host/run.hpp", new int, std::thread\n'),
    ("a string that names a leak", "host/a.cpp", 'auto s = "worker<<<1, 1>>>";\n'),
    ("placement new", "runtime/a.hpp", "inline void f(void* p) { ::new (p) int(3); }\n"),
    ("a deleted copy", "runtime/a.hpp", "struct A { A(const A&) = delete; };\n"),
    ("a header named for CUDA", "host/cuda_api.hpp", "#include <cuda_runtime_api.h>\n"),
    ("a dot-file at the top", ".clang-format", "\n"),
    ("an app's own folder by its full path", "apps/hello/a.cpp", '#include "apps/hello/text.hpp"\n'),
    ("tests include anything", "tests/host/test_a.cu", '#include "device/worker.cuh"\n#include "host/run.hpp"\n'),
]


class LayerRules(PlantedTree):
    def test_clean_tree(self):
        self.assertEqual(leaks(self.root), [])

    def test_no_tree_at_all(self):
        self.assertEqual(len(leaks(self.root + "/apps")), 1)
        self.assertEqual(len(leaks(self.root + "/nowhere")), 1)


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
