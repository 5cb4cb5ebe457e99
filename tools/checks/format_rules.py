"""Whether sources are as .clang-format has them, and no line is longer than its ColumnLimit."""
import os
import re
import shutil
import subprocess

from source_text import files, is_cpp, read

MAJOR = 14
_EXPECTED = "// expect: "  # a compile-fail test's expression stands in one line


def find_formatter():
    """The program's path, or None if it is missing or of another major version."""
    for name in (f"clang-format-{MAJOR}", "clang-format"):
        path = shutil.which(name)
        if path:
            told = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
            if re.search(rf"version {MAJOR}\.", told):
                return path
    return None


def sources(root):
    return [path for path in files(root) if is_cpp(path)]


def fix(root, formatter):
    subprocess.run([formatter, "-i", *sources(root)], check=True, cwd=root)


def _differing(root, formatter):
    """Each file that the formatter would change, with the first line it would change."""
    done = subprocess.run([formatter, "--dry-run", *sources(root)], check=True, cwd=root, stderr=subprocess.PIPE, text=True)
    found = {}
    for match in re.finditer(r"^(?:\./)?([^\s:][^:\n]*):(\d+):\d+: warning: code should be clang-formatted", done.stderr, re.MULTILINE):
        found.setdefault(match[1], match[2])
    return found


def format_faults(root, formatter):
    limit = int(re.search(r"^ColumnLimit: (\d+)", read(root, ".clang-format"), re.MULTILINE)[1])
    found = [f"{path}:{line}: is not as .clang-format has it; run tools/format_check --fix"
             for path, line in _differing(root, formatter).items()]
    for path in sources(root):
        for number, line in enumerate(read(root, path).split("\n"), 1):
            if len(line) > limit and not line.startswith(_EXPECTED):
                found.append(f"{path}:{number}: is {len(line)} characters long, at most {limit} are allowed; break it")
    return sorted(found)
