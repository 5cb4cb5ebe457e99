"""The rules of the rooms inside runtime/, host/ and an app of many files: who may include whom, how many files one holds, how
deep includes go."""
import os
import re

from source_text import LIBRARY, blank, is_cpp, line_of, read

# A file may include its own room and those before it.
ORDER = {
    "runtime": ("base", "records", "ready", "dynamic", "poller", "compiled", "tree", "gemm", "cpu"),
    "host": ("base", "trace", "engine", "kernel", "tasks", "plan", "load", "single", "collect", "submit", "futures", "api",
             "gemm"),
}
# The same of an app: its own folders.
APP_ORDER = {
    "apps/llama": ("checkpoint", "chat", "decode", "portable", "tuned", "bench", "cli"),
}
# The header of a program that only submits, the rooms whose files it brings, and of those what it does not bring.
SUBMITTER = "host/include/flywheel/flywheel.hpp"
SUBMITTER_NEEDS = ("runtime/base/", "runtime/records/", "runtime/tree/", "runtime/include/", "host/base/", "host/trace/", "host/tasks/", "host/plan/",
                   "host/load/", "host/futures/", "host/api/")
SUBMITTER_LEAVES = "runtime/records/device_state.hpp"
MOST_FILES = 16
LONGEST_CHAIN = 8  # files of one room, each of which includes the next

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_PUBLIC = "/include/"


def _room(path):
    """(layer, room) of a file in a room, else None."""
    parts = path.split("/")
    return tuple(parts[:2]) if len(parts) == 3 and parts[0] in ORDER else None


def _place(path):
    """(area, room, order of the area's rooms) of a file in a room of the library or of an app, else None."""
    for area, order in (ORDER | APP_ORDER).items():
        room = path.removeprefix(area + "/").split("/")[0]
        if path.startswith(area + "/") and room in order:
            return area, room, order
    return None


def _includes(root, paths):
    """Path -> (included path, line) of the library's own files, and of the apps with rooms."""
    present = set(paths)
    found = {}
    for path in paths:
        if not (path.split("/")[0] in LIBRARY or _place(path)) or not is_cpp(path):
            continue
        text, here = read(root, path), os.path.dirname(path)
        names = [(match.group(1), line_of(text, match.start())) for match in _INCLUDE.finditer(blank(text))]
        beside = [(os.path.normpath(os.path.join(here, name)), line) for name, line in names]
        found[path] = [(near if near in present else name, line) for (near, line), (name, _) in zip(beside, names)]
    return found


def misplaced(paths):
    """Source files of runtime/ and host/ that stand in no room, and rooms that no rule names."""
    for path in paths:
        layer, room = path.split("/")[0], _room(path)
        if layer not in ORDER or not is_cpp(path) or _PUBLIC in path:
            continue
        if room is None or room[1] not in ORDER[layer]:
            yield f"{path}: stands in no room: move it into one of {layer}/{{{','.join(ORDER[layer])}}}"


def _backward(path, target):
    if path.startswith("device/") and _PUBLIC not in path and _room(target) == ("runtime", "cpu"):
        return "what runs on the GPU needs nothing of CPU workers"
    here, there = _place(path), _place(target)
    if not here or not there or here[0] != there[0]:
        return None
    _, room, order = here
    if order.index(there[1]) > order.index(room):
        return f"{room} comes before {there[1]}: move what both need into {room} or before it"
    return None


def backward_includes(includes):
    for path, targets in sorted(includes.items()):
        for target, line in targets:
            why = _backward(path, target)
            if why:
                yield f"{path}:{line}: includes {target}: {why}"


def crowded(paths):
    counts = {}
    for path in paths:
        if path.split("/")[0] in LIBRARY and is_cpp(path):
            counts.setdefault(os.path.dirname(path), []).append(path)
    for folder, inside in sorted(counts.items()):
        if len(inside) > MOST_FILES:
            yield f"{folder}: holds {len(inside)} source files, at most {MOST_FILES} are read at a glance: part it by what they do"


def long_chains(includes):
    """The longest chain of each room, where it is too long."""
    known = {}

    def chain(path, room):
        if path not in known:
            known[path] = [path]  # an include that comes back to itself ends there
            inside = [target for target, _ in includes.get(path, []) if _room(target) == room]
            known[path] = [path] + max((chain(target, room) for target in inside), key=len, default=[])
        return known[path]

    longest = {}
    for path in sorted(includes):
        room = _room(path)
        if room and len(chain(path, room)) > len(longest.get(room, [])):
            longest[room] = chain(path, room)
    for room, files in sorted(longest.items()):
        if len(files) > LONGEST_CHAIN:
            yield f"{'/'.join(room)}: {len(files)} files include one another in a chain, at most {LONGEST_CHAIN}: {' -> '.join(files)}"


def reached_by_submitters(includes):
    """Files that programs which only submit would compile, and that they have no use for: the scheduler, engines."""
    reached, open_paths = {SUBMITTER}, [SUBMITTER]
    while open_paths:
        path = open_paths.pop()
        for target, line in includes.get(path, []):
            if target in reached or target.split("/")[0] not in LIBRARY:
                continue
            reached.add(target)
            open_paths.append(target)
            if target == SUBMITTER_LEAVES or not target.startswith(SUBMITTER_NEEDS):
                yield f"{path}:{line}: brings {target} into <flywheel/flywheel.hpp>: forward-declare what is needed of it"


def room_leaks(root, paths):
    includes = _includes(root, paths)
    return [*misplaced(paths), *backward_includes(includes), *crowded(paths), *long_chains(includes),
            *reached_by_submitters(includes)]
