"""Which CUDA calls nobody checks, which loops may spin for ever, and which status has no remedy."""
import re
from collections import namedtuple

from source_text import LIBRARY, blank, is_cpp, line_of, read, room_of

Counted = namedtuple("Counted", "all without")  # how many there are, and a line for each that falls short

_CUDA_CALL = re.compile(r"\bcuda[A-Z]\w*(?=\s*\()")
_TEXTS = {"cudaGetErrorString", "cudaGetErrorName", "cudaGetLastError"}  # these return no error of their own
# What takes a call's answer: a check, a variable, a comparison.
_TAKEN = re.compile(r"(?:FLYWHEEL_CUDA|cuda_check|cuda_note)\s*\(\s*$|cudaError_t\s+\w+\s*=\s*$")
_COMPARED = re.compile(r"\s*[!=]=\s*cudaSuccess")

_LOOP = re.compile(r"\b(?:while|for)\s*\(")
_ASKS = re.compile(r"\bmbarrier_\w+\(|\.load\(|\bready\(\)|\ball_out\(\)|\bis_done\(|\bdone\(\)")
# What ends a loop that asks: a count, a clock, the abort word, or another thread that is under a limit. The last is said.
_ENDS = re.compile(r"[<>]\s*(?:ptx::)?(?:k\w+|polls)\b|\babort\b|Clock::now|\bwait_for\(|\bspin_until\b|\bgo_on_waiting\b|limit", re.IGNORECASE)

_CASE = re.compile(r"\bcase Status::(\w+):\s*return\s*\{(.*?)\};", re.DOTALL)
_ENUM = re.compile(r"\benum class Status\b[^{]*\{(.*?)\}", re.DOTALL)


def after_parenthesis(code, at):
    """The offset behind the parenthesis that closes the one before `at`."""
    depth = 1
    while at < len(code) and depth:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


def _library(root, paths):
    for path in paths:
        if room_of(path) in LIBRARY and is_cpp(path):
            text = read(root, path)
            yield path, text, blank(text, strings=True)


def cuda_calls(root, paths):
    count, without = 0, []
    for path, _, code in _library(root, paths):
        for match in _CUDA_CALL.finditer(code):
            if match.group() in _TEXTS or re.search(r"\bdefine\b[^\n]*$", code[:match.start()]):
                continue
            count += 1
            end = after_parenthesis(code, code.index("(", match.end() - 1) + 1)
            if not _TAKEN.search(code[:match.start()]) and not _COMPARED.match(code[end:]):
                without.append(f"{path}:{line_of(code, match.start())}: nobody looks at the answer of {match.group()}()")
    return Counted(count, without)


def _condition(code, match):
    head = code[match.end():after_parenthesis(code, match.end()) - 1]
    parts = head.split(";")
    return parts[1] if len(parts) == 3 else head


def _around(text, code, match):
    """A loop with its body, and the comments above it as far as its function goes."""
    end = after_parenthesis(code, match.end())
    body = re.match(r"\s*(?:\{|[^;{]*;)", code[end:])
    stop = end + body.end() if body else end
    if body and body.group().endswith("{"):
        depth = 1
        while stop < len(code) and depth:
            depth += {"{": 1, "}": -1}.get(code[stop], 0)
            stop += 1
    return "\n".join(text[:match.start()].split("\n")[-12:]) + text[match.start():stop]


def spins(root, paths):
    """Loops that poll: whose condition asks an atomic word, a barrier, or whether something is done."""
    count, without = 0, []
    for path, text, code in _library(root, paths):
        for match in _LOOP.finditer(code):
            if not _ASKS.search(_condition(code, match)):
                continue
            count += 1
            if not _ENDS.search(_around(text, code, match)):
                without.append(f"{path}:{line_of(code, match.start())}: a loop that polls: bound it, or say above it who has the limit")
    return Counted(count, without)


def statuses(root, paths):
    """The codes with which a run may end; each but `ok` has a sentence and a remedy."""
    path = "runtime/base/status.hpp"
    if path not in paths:
        return Counted(0, [f"{path}: absent, and with it the remedies"])
    text = blank(read(root, path))
    names = re.findall(r"\b(\w+)\s*=", _ENUM.search(text).group(1))
    texts = {name: re.findall(r'"((?:[^"\\]|\\.)*)"', body) for name, body in _CASE.findall(text)}
    without = [f"{path}: Status::{name} has no remedy" for name in names
               if name != "ok" and (len(texts.get(name, [])) < 2 or not all(texts[name]))]
    return Counted(len(names), without)
