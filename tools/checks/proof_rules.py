"""Which headers of the library no test is about, and which apps nothing checks."""
import os
import re

from source_text import LIBRARY, blank, files, is_cpp, read, room_of

# Headers that are tested by the name of what they take part in, and where.
TESTED_IN = {
    "device/gemm/mma_tile.cuh": "tests/runtime/test_kernel_gemm.cpp",
    "device/gemm/part_store.cuh": "tests/device/test_gemm.cu",
    "device/gemm/tile_copies.cuh": "tests/device/test_gemm.cu",
    "device/gemm/tile_store.cuh": "tests/device/test_gemm.cu",
    "device/gemm/tile_sums.cuh": "tests/runtime/test_kernel_gemm.cpp",
    "device/gemm/wgmma.cuh": "tests/device/test_gemm.cu",
    "device/compiled/bare.cuh": "tests/runtime/test_kernel_compiled.cpp",
    "device/compiled/control.cuh": "tests/runtime/test_kernel_compiled.cpp",
    "device/direct_starter.cuh": "tests/device/test_new_work.cu",
    "device/direct_worker.cuh": "tests/device/test_new_work.cu",
    "device/executor.cuh": "tests/runtime/test_kernel_dynamic.cpp",
    "device/group.cuh": "tests/device/test_racecheck.cu",
    "device/compiled/handoff.cuh": "tests/runtime/test_kernel_checked.cpp",
    "device/compiled/load.cuh": "tests/runtime/test_kernel_operands.cpp",
    "device/compiled/page.cuh": "tests/runtime/test_kernel_operands.cpp",
    "device/compiled/parts.cuh": "tests/runtime/test_kernel_early.cpp",
    "device/stream/stream_ring.cuh": "tests/runtime/test_kernel_streamed.cpp",
    "device/phased_tasks.cuh": "tests/runtime/test_kernel_look_ahead.cpp",
    "device/ptx.cuh": "tests/device/test_litmus.cu",
    "host/base/cuda_error.hpp": "tests/host/test_engine.cu",
    "host/base/cuda_stream.hpp": "tests/device/test_streams.cu",
    "host/base/deferred_release.hpp": "tests/host/test_abandoned.cpp",
    "host/base/lock.hpp": "tests/host/test_admission.cpp",
    "host/base/options_check.hpp": "tests/host/test_options.cpp",
    "host/base/process.hpp": "tests/host/test_fork.cpp",
    "host/engine/gpu_engine.hpp": "tests/host/test_engine.cu",
    "host/engine/gpu_staging.hpp": "tests/device/test_fresh_graphs.cu",
    "host/futures/run_error.hpp": "tests/host/test_run.cpp",
    "host/kernel/kernel_lifetime.hpp": "tests/host/test_park.cpp",
    "host/plan/schedule_lists.hpp": "tests/host/test_schedule.cpp",
    "host/plan/task_name.hpp": "tests/host/test_graph.cpp",
    "host/single/single_tasks.hpp": "tests/host/test_single.cpp",
    "host/trace/report_parts.hpp": "tests/host/test_trace_report.cpp",
    "runtime/base/constants.hpp": "tests/runtime/test_inbox.cpp",
    "runtime/poller/announcer.hpp": "tests/runtime/test_inbox_poller.cpp",
    "runtime/base/global_word.hpp": "tests/device/test_litmus.cu",
    "runtime/dynamic/suspend.hpp": "tests/host/test_yield.cpp",
    "runtime/dynamic/local_work.hpp": "tests/runtime/test_work_finder.cpp",
}

_TYPE = re.compile(r"\b(?:class|struct|enum class)\s+(\w+)\s*(?:final\s*)?[:{]")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_COMPARES = re.compile(r"\breturn\b[^;]*(?:\?\s*0\s*:\s*1|\?\s*1\s*:\s*0)\s*;|\breturn 1;")


def _stem(path):
    return os.path.basename(path).rsplit(".", 1)[0]


def headers(paths):
    """The library's headers, but for the public ones: those only include others."""
    return [path for path in paths
            if room_of(path) in LIBRARY and path.endswith((".hpp", ".cuh")) and "/include/" not in path]


def headers_without_test(root, paths):
    """Headers that share no stem with a test, that no test includes, of which none names a type, and that no row above names."""
    tests = [path for path in paths if path.startswith("tests/") and is_cpp(path)]
    stems = {_stem(path).removeprefix("test_").removeprefix("kernel_") for path in tests if _stem(path).startswith("test_")}
    texts = [read(root, path) for path in tests]
    included = {name for text in texts for name in _INCLUDE.findall(text)}
    words = {word for text in texts for word in re.findall(r"\w+", blank(text))}
    for path in headers(paths):
        types = set(_TYPE.findall(blank(read(root, path), strings=True)))
        if _stem(path) not in stems and path not in included and not types & words and TESTED_IN.get(path) not in paths:
            yield f"{path}: no test has its stem, includes it or names a type of it: write one, or name its test in proof_rules.py"


def stale_rows(paths):
    for header, test in TESTED_IN.items():
        for path in (header, test):
            if path not in paths and any(room_of(one) == "tests" for one in paths):
                yield f"{path}: proof_rules.py names it, and it is not there"


def programs(paths):
    """The numbered programs, and the folders of apps/ with a program of several files."""
    return sorted({"/".join(path.split("/")[:2]) for path in paths if re.match(r"apps/[^/]+/(?:\w+/)?main\.(?:cu|cpp)$", path)})


def apps_without_oracle(root, paths):
    """Programs that end with 0 whatever they computed, and whose output or parts no test compares."""
    tests = "".join(read(root, path) for path in paths if path.startswith(("tests/apps/", "tools/cmake/")))
    for app in programs(paths):
        name = app.split("/")[1]
        mains = [path for path in paths if re.match(re.escape(app) + r"/(?:\w+/)?main\.(?:cu|cpp)$", path)]
        if any(_COMPARES.search(blank(read(root, path))) for path in mains):
            continue
        if not re.search(rf"\bapp_{name}_says\b|apps/{name}/", tests):
            yield f"{app}: ends with 0 whatever it computed: compare with a plain loop, or look at its output in a test"
