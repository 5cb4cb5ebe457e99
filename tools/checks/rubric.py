"""The rows of the table by which the code is judged, each with the counts that decide it.

A row is full, "2", when none of its counts is over its limit. style_counts.py has those of sizes and of what is quiet, the
modules imported here those of the others.
"""
import re
from collections import namedtuple

import concurrency_rules
import failure_rules
import proof_rules
from layer_rules import kernel_lines, leaks
from source_text import blank, files, is_cpp, line_of, read, room_of
from style_counts import Counts, Row

# `name` is the table's. `rows` are its counts; `places` holds a line for each thing that is over.
Judged = namedtuple("Judged", "name rows places")

SUBMITTER = "host/include/flywheel/"
_PROGRAM = re.compile(r"<!-- quote: (\S+) -->\n```cpp\n(.*?)```", re.DOTALL)
_JOURNEY = re.compile(r"<!-- journey -->\n(.*?)<!-- /journey -->", re.DOTALL)
_FILE_OF_ROW = re.compile(r"^\| \d+ \| \[([^\]]+)\]", re.MULTILINE)
_CUDA_SYNTAX = re.compile(r"\b__(?:device|host|global|shared|constant|launch_bounds|syncthreads|syncwarp)__?\b|<<<|\bthreadIdx\b|\bblockIdx\b")


def _readme_program(root, paths):
    """The lines of code of README's program, and the comment that stands before them."""
    quoted = _PROGRAM.search(read(root, "README.md")) if "README.md" in paths else None
    if not quoted:
        return [], ""
    program = quoted.group(2)
    code = [line for line in blank(program).split("\n") if line.strip()]
    return code, program[:program.find("#include")]


def front_door(root, paths):
    code, picture = _readme_program(root, paths)
    headers = [path for path in paths if path.startswith(SUBMITTER) and "/" not in path[len(SUBMITTER):]]
    return Judged("front door", [
        Row("headers of a submitter", len(headers), 1),
        Row("lines of README's program", len(code) if code else 1000, 25),
        Row("README's program without a picture", 0 if re.search(r"->[^\n]*\n.*->", picture, re.DOTALL) else 1, 0),
    ], headers[1:])


def straight_line(root, paths):
    table = _JOURNEY.search(read(root, "host/README.md")) if "host/README.md" in paths else None
    stations = _FILE_OF_ROW.findall(table.group(1)) if table else []
    twice = sorted({file for file in stations if stations.count(file) > 1})
    return Judged("straight line", [
        Row("files from submit() to get()", len(stations) or 1000, 10),
        Row("files of these entered again", len(twice), 0),
        Row("no test records the journey", int("tests/journey/check" not in paths), 0),
    ], [f"host/README.md: the journey enters {file} twice" for file in twice])


def layering(root, paths):
    found = leaks(root)
    in_ci = any(path.startswith(".ci/") for path in paths) and "tools/layer_check" in paths
    return Judged("layering", [Row("leaks", len(found), 0), Row("no check in CI", int(not in_ci), 0)], found)


def apart(root, paths):
    kernels = kernel_lines(root, paths)
    syntax = [f"{path}:{line_of(code, match.start())}: {match.group()} is CUDA's: g++ builds host/"
              for path in paths if room_of(path) == "host" and is_cpp(path)
              for code in [blank(read(root, path), strings=True)] for match in _CUDA_SYNTAX.finditer(code)]
    return Judged("host and device apart", [
        Row("kernels in the library", len(kernels), 1),
        Row("CUDA syntax in host/", len(syntax), 0),
    ], syntax + kernels[1:])


def concurrency(root, paths):
    sites = concurrency_rules.all_sites(root, paths)
    without = [f"{site.path}:{site.line}: {site.what}: no comment nearby names its order, pair and reason"
               for site in sites if not site.explained]
    return Judged("concurrency in prose", [Row(f"of {len(sites)} sites, unexplained", len(without), 0)], without)


def failure(root, paths):
    calls, spins = failure_rules.cuda_calls(root, paths), failure_rules.spins(root, paths)
    statuses = failure_rules.statuses(root, paths)
    return Judged("failure", [
        Row(f"of {calls.all} CUDA calls, unchecked", len(calls.without), 0),
        Row(f"of {spins.all} spins, unbounded", len(spins.without), 0),
        Row(f"of {statuses.all} statuses, without remedy", len(statuses.without), 0),
    ], [*calls.without, *spins.without, *statuses.without])


def proof(root, paths):
    headers = proof_rules.headers(paths)
    untested = [*proof_rules.headers_without_test(root, paths), *proof_rules.stale_rows(paths)]
    apps = proof_rules.programs(paths)
    unchecked = list(proof_rules.apps_without_oracle(root, paths))
    kinds = {"ThreadSanitizer": "tests/support/tsan.supp", "mutations": "tests/runtime/test_mutations.cpp",
             "planted faults": "tests/simulate/planted", "compile-fail tests": "tests/compile_fail/task_without_body.cpp"}
    absent = [f"{path}: absent, and with it the {kind}" for kind, path in kinds.items() if path not in paths]
    return Judged("proof", [
        Row(f"of {len(headers)} headers, without a test", len(untested), 0),
        Row(f"of {len(apps)} apps, without an oracle", len(unchecked), 0),
        Row(f"of {len(kinds)} kinds of proof, absent", len(absent), 0),
    ], [*untested, *unchecked, *absent])


def judge(root):
    """All rows of the table, in its order."""
    paths = files(root)
    counts = Counts(root)
    return [
        front_door(root, paths),
        straight_line(root, paths),
        layering(root, paths),
        apart(root, paths),
        Judged("size of files", counts.file_rows(), []),
        Judged("size of functions", counts.function_rows(), []),
        concurrency(root, paths),
        failure(root, paths),
        proof(root, paths),
        Judged("quiet", counts.quiet_rows(), counts.places),
    ]
