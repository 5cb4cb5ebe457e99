"""Reads the repository's files and takes C++ text apart just far enough to count and search it."""
import os
import re
import subprocess

ROOMS = ("runtime", "device", "host", "apps", "tests", "tools")
LIBRARY = ROOMS[:3]
CPP = (".hpp", ".cpp", ".cuh", ".cu")

# A comment, a string or a character. The look-behind leaves digit separators (1'000) alone.
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/)
      | (?P<string>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)" | "(?:[^"\\\n]|\\.)*"
          | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+')""",
    re.DOTALL | re.VERBOSE)


def blank(text, strings=False):
    """The text with comments, and strings too when asked, turned to spaces; every other character stays in place."""
    def spaces(match):
        if match.group("comment") or strings:
            return re.sub(r"[^\n]", " ", match.group())
        return match.group()
    return _TOKEN.sub(spaces, text)


def files(root):
    """Paths of the tree relative to root, sorted: what git tracks or would track, or without git all but builds."""
    if os.path.exists(os.path.join(root, ".git")):
        command = ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
        return sorted(path for path in set(listed) if os.path.isfile(os.path.join(root, path)))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(("build", "__pycache__"))]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def room_of(path):
    """The top-level folder of a relative path."""
    return path.split("/", 1)[0]


def is_cpp(path):
    return path.endswith(CPP)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        return source.read()


def line_of(text, offset):
    """The line number, from 1, of a character offset."""
    return text.count("\n", 0, offset) + 1
