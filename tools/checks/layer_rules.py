"""The rules of the rooms: what stands at the top level, who may include whom, and what each room may not do."""
import os
import re

from include_claims import false_claims
from room_rules import room_leaks
from source_text import CPP, LIBRARY, ROOMS, blank, files, is_cpp, line_of, read, room_of

TOP_LEVEL = set(ROOMS) | {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE"}
PUBLIC = {"flywheel/flywheel.hpp": "host", "flywheel/task.cuh": "device", "flywheel/gemm.cuh": "device", "flywheel/ring.cuh": "device",
          "flywheel/version.hpp": "version"}
# Headers by which files of a room include what tests may put in its place.
SEAMS = {"flywheel/detail/ptx.cuh": "device", "flywheel/detail/platform.cuh": "device", "flywheel/detail/group.cuh": "device",
         "flywheel/detail/native_atomic.hpp": "runtime"}
BRIDGES = {"device/include/flywheel/gemm.cuh", "device/include/flywheel/ring.cuh", "device/include/flywheel/task.cuh",
           "host/include/flywheel/flywheel.hpp"}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_TOOLKIT = re.compile(r"(cuda|cuComplex|cooperative_groups|device_|vector_|mma\.h|nvtx3/|nv/|cub/|thrust/)")
_PRIVATE = re.compile(r"(spdlog|fmt|nlohmann|concurrentqueue|moodycamel|CLI)\b|(blocking)?concurrentqueue\.h|catch2|rapidcheck")
_ALLOCATING = set("vector string map set unordered_map unordered_set deque list queue stack functional memory "
                  "memory_resource iostream sstream fstream new mutex shared_mutex condition_variable future".split())

# Which kinds of include each room may hold. "own" is the room itself, or for an app its own folder.
# A folder of apps/ without a main is a library of apps, which all of them may include.
MAY_INCLUDE = {
    "runtime": {"own", "std", "atomic", "seam:runtime"},
    "device": {"own", "runtime", "seam:device", "std", "atomic", "toolkit", "public:device", "public:version"},
    "host": {"own", "runtime", "std", "public:host", "public:version"},
    "apps": {"own", "library", "std", "atomic", "toolkit", "private", "system", "public:host", "public:device",
             "public:version"},
    "tools": {"own", "host", "runtime", "std", "atomic", "toolkit", "private", "system", "public:host",
              "public:device", "public:version"},
}
REMEDY = {
    "runtime": "runtime/ may include only std headers that neither allocate nor lock, cuda/std, cuda/atomic and runtime/",
    "device": "device/ may include runtime/, the CUDA Toolkit and device/; what both sides need belongs in runtime/",
    "host": "host/ may include runtime/, std and host/; private packages and cuda_runtime_api.h go in a .cpp",
    "apps": "an app may include <flywheel/...>, packages, its own folder and the folders of apps/ that hold no program",
    "tools": "a tool may include <flywheel/...>, host/, runtime/, packages and its own folder",
}

# Patterns on the text without comments, each with what to do instead.
FORBIDDEN = {
    "runtime": [
        (r"\bcuda[A-Z]\w*\s*\(|\bcu[A-Z][a-z]\w*\s*\(", "calls CUDA: move the call to host/ or device/"),
        (r"\bstd::j?thread\b(?!::hardware)|\bstd::async\b|\bpthread_\w+",
         "makes a thread: the engine in host/ owns threads"),
        (r"(?<!operator )(?<!::)\bnew\b(?!\s*\()|\bnew\s*\(\s*std::nothrow|\b[mc]alloc\s*\(|\brealloc\s*\("
         r"|\bmake_(?:unique|shared)\b|\baligned_alloc\s*\(",
         "allocates: take memory from the caller"),
    ],
    "host": [(r"<<<", "launches with <<<>>>: launch through the function pointer of KernelEntry")],
    "device": [],
}


def _holds_program(folder, present):
    return any(one.startswith(folder + "/") and re.search(r"/main\.(cpp|cu)$", one) for one in present)


def _kind_for_app(path, target, present):
    here, there = ("/".join(name.split("/")[:2]) for name in (path, target))
    if here == there:
        return "own"
    is_library = room_of(target) == "apps" and not _holds_program(there, present)
    return "library" if is_library else "another app or an inner header"


def include_kind(path, name, quoted, present):
    """What an include is, seen from the file that holds it: a room, own, std, atomic, toolkit, private, ..."""
    room, here = room_of(path), os.path.dirname(path)
    beside = os.path.normpath(os.path.join(here, name))
    target = beside if quoted and beside in present else name
    if target in PUBLIC:
        return "public:" + PUBLIC[target]
    if target in SEAMS:
        return "seam:" + SEAMS[target]
    if room_of(target) in ROOMS and "/" in target:
        if room == "apps":
            return _kind_for_app(path, target, present)
        return "own" if room_of(target) == room else room_of(target)
    if _PRIVATE.match(name):
        return "private"
    if name == "cuda/atomic" or name.startswith("cuda/std/"):
        return "atomic"
    if _TOOLKIT.match(name):
        return "toolkit"
    if quoted:
        return "unknown"
    return "std" if "/" not in name and "." not in name else "system"


def _allowed(path, kind, name):
    """Whether the file may hold the include, with the exceptions that the table of rooms makes."""
    room = room_of(path)
    if path in BRIDGES:
        return kind in LIBRARY or kind == "own" or kind.startswith("public:") or kind in MAY_INCLUDE[room]
    if room == "runtime" and name in _ALLOCATING:
        return False
    if room == "host" and path.endswith(".cpp") and kind in {"private", "system", "atomic"}:
        return True
    if room == "host" and name.startswith("nvtx3/") and kind == "toolkit":
        return path.endswith(".cpp")
    if room == "host" and name.startswith("cuda") and kind == "toolkit":
        return path.endswith(".cpp") or "cuda" in os.path.basename(path)
    return kind in MAY_INCLUDE[room]


def include_leaks(path, text, present):
    """A line for each include the file's room may not hold."""
    room = room_of(path)
    for match in _INCLUDE.finditer(blank(text)):
        name = match.group(2)
        kind = include_kind(path, name, match.group(1) == '"', present)
        if not _allowed(path, kind, name):
            yield f"{path}:{line_of(text, match.start())}: includes {name} ({kind}): {REMEDY[room]}"


def forbidden_text(path, text):
    """A line for each thing the file does that its room may not."""
    code = blank(text, strings=True)
    for pattern, remedy in FORBIDDEN.get(room_of(path), []):
        for match in re.finditer(pattern, code):
            yield f"{path}:{line_of(code, match.start())}: {match.group().strip()!r} {remedy}"


def top_level_leaks(paths):
    for name in sorted({room_of(path) for path in paths}):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield f"{name}: stands at the top level; move it into one of {', '.join(ROOMS)}"


_KERNEL = "__" + "global__"


def kernel_lines(root, paths):
    """The lines of the library in which the word for a kernel stands."""
    return [f"{path}:{number}" for path in paths if room_of(path) in LIBRARY
            for number, line in enumerate(read(root, path).split("\n"), 1) if _KERNEL in line]


def kernel_leaks(root, paths):
    """The library has one kernel, and the word stands in one line, so that a search finds it at once."""
    lines = kernel_lines(root, paths)
    if len(lines) > 1:
        yield f"{_KERNEL} stands in {len(lines)} lines of the library ({', '.join(lines)}): keep the one kernel"


def half_merged(root, paths):
    """What a merge leaves where two changes met."""
    mark = "<" * 7 + " "
    for path in paths:
        if path.endswith((".md", ".txt", ".py", ".cmake", *CPP)):
            for number, line in enumerate(read(root, path).split("\n"), 1):
                if line.startswith(mark):
                    yield f"{path}:{number}: a merge was not finished here: keep one of the two, or both"


def misplaced_files(paths):
    """host/ is built by g++, and runtime/ has no source files of its own."""
    for path in paths:
        room, extension = room_of(path), os.path.splitext(path)[1]
        if path not in BRIDGES and extension in CPP and extension not in {
                "runtime": (".hpp",), "device": (".cuh",), "host": (".hpp", ".cpp")}.get(room, CPP):
            yield f"{path}: a {extension} file does not belong in {room}/"


def leaks(root):
    """All findings for the tree at root, each with its place and its remedy."""
    paths = files(root)
    if not any(room_of(path) in LIBRARY for path in paths):
        return [f"{root}: holds no library; name the root of the tree"]
    present = set(paths)
    found = [*top_level_leaks(paths), *misplaced_files(paths), *kernel_leaks(root, paths), *half_merged(root, paths),
             *room_leaks(root, paths),
             *false_claims({path: read(root, path) for path in paths if room_of(path) in LIBRARY and is_cpp(path)})]
    for path in filter(is_cpp, paths):
        if room_of(path) in MAY_INCLUDE:
            text = read(root, path)
            found += [*include_leaks(path, text, present), *forbidden_text(path, text)]
    return found
