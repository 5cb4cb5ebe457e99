"""Runs the simulator on a planted fault until it finds something."""
import dataclasses
import re
import subprocess
import time

FINDING = re.compile(r"^FINDING seed (\d+): (.*)$", re.M)


@dataclasses.dataclass
class Limits:
    schedules: int
    seconds: int
    first_seed: int


@dataclasses.dataclass
class Trial:
    found: bool
    schedules: int
    seconds: float
    seed: str
    finding: str


def try_fault(fault, root, build, limits):
    program, planted = fault.prepare(root, build)
    command = [program, *planted, "--shape", fault.shape, *fault.options, "--findings", "1", "--seed", str(limits.first_seed),
               "--count", str(limits.schedules), "--seconds", str(limits.seconds)]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    found = FINDING.search(done.stderr)
    if found:
        return Trial(True, int(found[1]) - limits.first_seed + 1, seconds, found[1], found[2])
    ran = re.search(r"^(\d+) runs", done.stdout, re.M)
    return Trial(False, int(ran[1]) if ran else 0, seconds, "-", "NOT FOUND " + done.stderr[-200:])
