"""Weakened memory orders: rows of orders.txt."""
import os
import re
import subprocess


class Order:
    """An order or a scope at one line of the sources, and what is left of it."""

    def __init__(self, row):
        self.name, self.shape, self.left, place, self.text = row.split(None, 4)
        self.path, _, self.within = place.partition("<")
        self.options = []

    def line(self, root):
        """Where the text stands, from 1. None if it does not stand there exactly once."""
        with open(os.path.join(root, self.path), encoding="utf-8") as file:
            lines = [number for number, line in enumerate(file, 1) if self.text in line]
        return lines[0] if len(lines) == 1 else None

    def problems(self, root):
        if self.line(root) is None:
            yield f"{self.name}: {self.path} does not have this once: {self.text}"

    def prepare(self, root, build):
        """The program to run, and the options that plant the fault."""
        program = os.path.join(build, "tests", "simulate", "simulate")
        frames = places_of(program)
        places = [f"{at:x}" for at, lines in frames.items() if (self.path, self.line(root)) in lines
                  and (not self.within or any(path == self.within for path, _ in lines))]
        if not places:
            raise LookupError(f"{self.name}: the program has no place for {self.path}:{self.line(root)}")
        if self.left == "narrow":
            return program, ["--narrow", ",".join(places)]
        return program, ["--weaken", ",".join(f"{place}={self.left}" for place in places)]


def read(here):
    with open(os.path.join(here, "planted_faults", "orders.txt"), encoding="utf-8") as file:
        return [Order(line.strip()) for line in file if line.strip() and not line.startswith("#")]


CALL = re.compile(r"^\s*([0-9a-f]+):\s+call.*<(?:__tsan_atomic\w+|\w*simulate\d+scoped_\w+)>")
NEXT = re.compile(r"^\s*([0-9a-f]+):")
FRAME = re.compile(r"/((?:runtime|host|tests)/\S+):(\d+)")
known = {}


def returns_of(program):
    """Where the calls for atomic accesses come back to: the addresses that the simulator knows places by."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    called = False
    for line in text.splitlines():
        if called and (match := NEXT.match(line)):
            yield int(match[1], 16)
        called = bool(CALL.match(line))


def places_of(program):
    """{place: [(file, line) of the code there and of what it is inlined in]}."""
    if program in known:
        return known[program]
    frames = {}
    asked = "\n".join(f"{at - 1:x}" for at in returns_of(program))
    text = subprocess.run(["addr2line", "-a", "-i", "-e", program], input=asked, check=True, capture_output=True, text=True).stdout
    at = 0
    for line in text.splitlines():
        if line.startswith("0x"):
            at = int(line, 16) + 1
        elif match := FRAME.search(os.path.normpath(line)):
            frames.setdefault(at, []).append((match[1], int(match[2])))
    known[program] = frames
    return frames
