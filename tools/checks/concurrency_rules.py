"""Finds the places where threads synchronize, and those among them that no comment explains.

A site is a line with an access that names a memory order, a fence, an operation of an mbarrier, or a barrier of a warp or block.
A comment explains it if it stands in the statement, in the lines above it in the same function, or at the head of the function; if
it names the order, or sends the reader to another comment that does; and if it says what the site pairs with, or why the order
suffices. Of a barrier it says which threads meet, and what each sees or has done then.
"""
import re
from collections import namedtuple

from functions import functions
from source_text import LIBRARY, blank, is_cpp, line_of, read, room_of

Site = namedtuple("Site", "path line what explained")

LINES_ABOVE = 16  # a comment in a function speaks for so many lines below it

_ORDER = r"(?:Order::(?:relaxed|acquire|release|acq_rel)|k(?:AfterRelease|BeforeAcquire|Between)|memory_order_\w+)"
_METHODS = r"\.(?:load|store|exchange|add|set|fetch_\w+|compare_exchange\w*)\("
# An order that is an argument, one that a variable holds, or none, which is seq_cst.
_ACCESS = re.compile(r"[(,?:]\s*(?:\w+::)*\b" + _ORDER + r"(?=\s*[),:])|" + _METHODS + r"[^;]*\border(?=\))|\.load(?=\(\))")
_CALL = re.compile(r"\b(?:release_fence|acquire_fence|fence|fence_(?:global|shared)_for_bulk_copies|atomic_thread_fence"
                   r"|publish_mbarriers|mbarrier_\w+|expect_bytes|arrive_when_copied|wait_phase(?:_\w+)?|__syncwarp|__syncthreads"
                   r"|named_barrier)(?=\s*\()")
_ASM = re.compile(r'\basm volatile\(\s*(?:\n\s*)?"[^"]*\b(?:fence|mbarrier|atom|red|acquire|release|relaxed|bar|barrier)\b')
_COMMENT = re.compile(r"//.*")
_GOES_ON = re.compile(r"\\$|^(?!\s*#).*[^;{}:\s]\s*$")  # a line that is not the last of its statement
_ONE_LINE = re.compile(r"\{.*\}\s*$")
_DECLARED = re.compile(r"(?:\bvoid|\bbool|\bauto)\s+(?:\w+::)*$")
# What says with whom, or why.
_REASON = re.compile(r"\bpair|\b(?:see|sees|seen|as (?:in|there|for)|covers?|because|so that|only|hint|nothing|no (?:other|order)"
                     r"|under the|publish\w*|visible|orders?|rejoin)\b", re.IGNORECASE)
_IS_BARRIER = re.compile(r"(?:__syncwarp|__syncthreads|named_barrier)$")
_ELSEWHERE = r"\bsee \w|\bas (?:in|above|there|for)\b"  # the reader is sent to another comment
# Of a barrier, which orders all that its threads did before it: who meets, and what is done then.
_BARRIER = r"\b(?:lanes?|threads?|warps?)\b.*\b(?:sees?|seen|visible|have|has|come|stored|written|wrote|put|rejoin|leave|left|before|covers?|pairs|publish\w*)\b"
# What names the order of a site: by the end of the site's own name.
_ORDERS = [(re.compile(name), re.compile(rf"{words}|{_ELSEWHERE}", re.IGNORECASE)) for name, words in (
    (r"relaxed$", r"\brelaxed\b"),
    (r"_fence$", r"\bacquir|\breleas"),
    (r"(?:acquire|BeforeAcquire)$", r"\bacquir"),
    (r"(?:release|AfterRelease|_arrive|expect_bytes|arrive_when_copied)$", r"\breleas"),
    (r"(?:acq_rel|Between)$", r"\bacq_rel\b|\bacquir.*\breleas|\breleas.*\bacquir"),
    (r"(?:seq_cst|load)$", r"\bseq_cst\b"),  # a load without an order is seq_cst
    (r"(?:mbarrier_test|mbarrier_poll|mbarrier_poll_if|wait_phase\w*)$", r"\bacquir|\bno order\b"),
    (r"(?:mbarrier_init|mbarrier_invalidate)$", r"\bno order\b|\b__syncthreads\b|\barrivals\b"),
    (_IS_BARRIER.pattern, _BARRIER),
    (r"", r"\border|\bfence|\bacquir|\breleas|\brelaxed\b"),
)]


def _sites(text, code):
    """(line, what) of each site; one for each line."""
    found = {}
    for pattern, where in ((_ACCESS, code), (_CALL, code), (_ASM, blank(text))):
        for match in pattern.finditer(where):
            if not _DECLARED.search(where[:match.start()]):
                found.setdefault(line_of(where, match.end()), re.search(r"[\w.]+$", match.group()).group())
    return sorted(found.items())


class _Text:
    """The comments of one file, and the statements and functions that they stand at."""

    def __init__(self, text):
        self.code = blank(text, strings=True)
        self.lines = text.split("\n")
        self.code_lines = self.code.split("\n")
        self.functions = functions(text)

    def comment(self, line):
        """The comment on that line, from 1; "" if it has none."""
        if not 0 < line <= len(self.lines):
            return ""
        rest = self.lines[line - 1][len(self.code_lines[line - 1].rstrip()):]
        return rest if _COMMENT.search(rest) else ""

    def is_comment(self, line):
        return 0 < line <= len(self.lines) and not self.code_lines[line - 1].strip() and bool(self.comment(line))

    def block_above(self, line):
        """The lines of comment that end just above that line."""
        first = line
        while self.is_comment(first - 1):
            first -= 1
        return " ".join(self.comment(at) for at in range(first, line))

    def head(self, line):
        """The first line of the definition whose `{` stands on that line."""
        while line > 1 and _GOES_ON.search(self.code_lines[line - 2]):
            line -= 1
        return line

    def docstring(self, line):
        """The comment above the definition whose `{` stands on that line; of definitions of one line each, above the first."""
        head = self.head(line)
        while not self.is_comment(head - 1) and _ONE_LINE.search(self.code_lines[head - 2]):
            head = self.head(head - 1)
        return self.block_above(head)

    def statement_end(self, line):
        while line < len(self.lines) and not re.search(r"[;{}]\s*$", self.code_lines[line - 1].rstrip()):
            line += 1
        return line

    def speaks_for(self, line):
        """All comments that may explain a site on that line."""
        inside = [f for f in self.functions if f.line <= line < f.line + f.lines]
        start = inside[-1].line if inside else self.head(line)
        near = [self.comment(at) for at in range(max(start, line - LINES_ABOVE), self.statement_end(line) + 1)]
        return " ".join([self.docstring(start), *near])


def sites(path, text):
    """The sites of one file, in the order of its lines."""
    parsed = _Text(text)
    for line, what in _sites(text, parsed.code):
        said = parsed.speaks_for(line)
        named = next(words for name, words in _ORDERS if name.search(what))
        reason = named if _IS_BARRIER.search(what) else _REASON
        yield Site(path, line, what, bool(named.search(said) and reason.search(said)))


def all_sites(root, paths):
    """The sites of the library."""
    return [site for path in paths if room_of(path) in LIBRARY and is_cpp(path) for site in sites(path, read(root, path))]
