"""Runs one fuzzer for a while and reads what libFuzzer says about it."""
import glob
import os
import re
import subprocess
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEFAULT_BIN = next((path for path in (os.path.join(ROOT, folder, "tests/fuzz") for folder in ("build/fuzz", ".stage"))
                    if os.path.isdir(path)), os.path.join(ROOT, "build/fuzz/tests/fuzz"))

# What an execution may take: more is a finding. libfuzzer.cpp limits what it computes; this limit is for one that sleeps.
LIMITS = ["-timeout=60", "-rss_limit_mb=1024", "-malloc_limit_mb=64", "-max_len=4096"]

# Freed blocks are kept for a while and stacks of allocations are short: both cost time for each of millions of executions.
ENVIRONMENT = {
    "ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=2:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_NO_LEAKS = "LeakSanitizer has encountered a fatal error"
_COVERAGE = re.compile(r"\bcov: (\d+)")
_EXECUTIONS = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)

Result = namedtuple("Result", "parser executions seconds coverage finding log")  # seconds: of the processor


class Scratch:
    """Where one fuzzer writes: inputs that reach something new, findings and logs. Never the tree."""

    def __init__(self, folder, parser):
        self.corpus, self.findings, self.logs = (os.path.join(folder, parser, name) for name in ("corpus", "findings", "logs"))
        for path in (self.corpus, self.findings, self.logs):
            os.makedirs(path, exist_ok=True)

    def new_log(self):
        return os.path.join(self.logs, f"{len(os.listdir(self.logs))}-{time.monotonic_ns()}")

    def finding(self, log):
        """The input of a finding that this log tells of, or else the log."""
        with open(log, encoding="utf-8", errors="replace") as file:
            named = re.search(r"Test unit written to (\S+)", file.read())
        return named.group(1) if named else log


def parsers(folder):
    """The parsers that have a fuzzer in this folder."""
    names = (os.path.basename(path) for path in glob.glob(os.path.join(folder, "fuzz_*")) if os.access(path, os.X_OK))
    return sorted(name[len("fuzz_"):] for name in names if "." not in name)


def _run(command, log, environment):
    """Gives its exit status and the seconds of the processor that it took."""
    with open(log, "wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 env={**os.environ, **environment})
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status  # of a child that was waited for here, subprocess would find none
    return status, usage.ru_utime + usage.ru_stime


def can_see_leaks(binary, scratch):
    """Whether LeakSanitizer works here: it traces its own process, which some containers forbid."""
    log = scratch.new_log()
    # Now and then it calls a block of the C library's own a leak, and writes the empty input as a finding: beside the log.
    _run([binary, "-runs=1", f"-artifact_prefix={scratch.logs}/"], log, ENVIRONMENT)
    with open(log, encoding="utf-8", errors="replace") as file:
        return _NO_LEAKS not in file.read()


def run_fuzzer(binary, parser, scratch, seconds, leaks=True, extra=()):
    """Runs it for so long from the committed corpus and from what earlier runs left in the scratch folder."""
    log = scratch.new_log()
    command = [binary, f"-max_total_time={seconds}", f"-detect_leaks={int(leaks)}", "-print_final_stats=1", *LIMITS, *extra,
               f"-dict={HERE}/dictionaries/{parser}.dict", f"-artifact_prefix={scratch.findings}/",
               scratch.corpus, *(os.path.join(HERE, "corpus", name) for name in ("json", parser))]
    options = dict(ENVIRONMENT)
    if not leaks:
        options["ASAN_OPTIONS"] += ":detect_leaks=0"
    status, cpu_seconds = _run(command, log, options)
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    executions, coverage = _EXECUTIONS.search(text), _COVERAGE.findall(text)
    return Result(parser, int(executions.group(1)) if executions else 0, cpu_seconds,
                  int(coverage[-1]) if coverage else 0, scratch.finding(log) if status != 0 else None, log)
