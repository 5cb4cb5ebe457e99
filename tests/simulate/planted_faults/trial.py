"""Runs the simulator on a planted fault until it finds something."""
import dataclasses
import re
import resource
import subprocess

STEPS = "4000000"  # more than any run of the unchanged sources takes
BUSY = 4  # a machine may be so much slower than its cores are
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


def spent():
    """Seconds of a core that ended children have taken: those of a clock would tell how busy the machine is."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def try_fault(fault, root, build, limits):
    program, planted = fault.prepare(root, build)
    command = [program, *planted, "--shape", fault.shape, *fault.options, "--findings", "1", "--steps", STEPS, "--seed", str(limits.first_seed),
               "--count", str(limits.schedules), "--seconds", str(BUSY * limits.seconds)]
    start = spent()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = spent() - start
    found = FINDING.search(done.stderr)
    if found and seconds <= limits.seconds:
        return Trial(True, int(found[1]) - limits.first_seed + 1, seconds, found[1], found[2])
    ran = re.search(r"^(\d+) runs", done.stdout, re.M)
    return Trial(False, int(ran[1]) if ran else 0, seconds, "-", "NOT FOUND " + done.stderr[-200:])
