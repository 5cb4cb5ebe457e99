"""Finds functions in C++ and CUDA text by matching braces: a heuristic, good enough to see a long one."""
import re
from collections import namedtuple

from source_text import blank, line_of

Function = namedtuple("Function", "line lines name")

_LEVELS = re.compile(r"[(){};]")
_TYPE = re.compile(r"(?:^|[\s>\]:;])(?:class|struct|union|enum)\b(?![^<]*>[^()]*\w+\s*\()")
_SCOPE = re.compile(r"\b(?:namespace\b[^()]*|extern)\s*$")
_MEMBER_LIST = re.compile(r"\)\s*(?:noexcept\b[^:{]*)?:(?!:)")
_REQUIRES = re.compile(r"\brequires\s*(?:\([^{}]*\))?\s*$")
_NAME = re.compile(r"(operator\s*(?:\(\s*\)|[^\s(]+)|~?\w+)\s*\(")


def _without_directives(code):
    """Preprocessor lines, continued ones too, turned to spaces: their braces do not pair."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.MULTILINE)


def _without_template(head):
    """The head of a definition without a leading template<...>, whose class T would look like a type."""
    head = re.sub(r"^(?:\s*(?:public|private|protected)\s*:)+", "", head)
    match = re.match(r"\s*template\s*<", head)
    while match:
        depth, at = 1, match.end()
        while at < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
        match = re.match(r"\s*template\s*<", head)
    return head


def classify(head):
    """What a brace opens after this head: 'scope', 'type', 'function' or 'value'."""
    head = _without_template(head).rstrip()
    if _SCOPE.search(head):
        return "scope"
    if _REQUIRES.search(head) or head.endswith(("=", ",", "return")) or ")" not in head:
        return "type" if _TYPE.search(head) and not head.endswith("=") else "value"
    if re.match(r"\s*(?:class|struct|union|enum)\b", head) and not _NAME.search(re.sub(r"alignas\s*\([^)]*\)", "", head)):
        return "type"
    if _MEMBER_LIST.search(head) and head[-1] not in ")}":
        return "value"
    return "function"


def _name(head):
    match = _NAME.search(_without_template(head))
    return match.group(1) if match else "?"


def functions(text):
    """Every function of the text with its first line, its name and its lines from `{` to `}`, both included.

    Lambdas and local types count as part of the function around them.
    """
    code = _without_directives(blank(text, strings=True))
    found, stack, parentheses, head_start = [], [], 0, 0
    for match in _LEVELS.finditer(code):
        mark, at = match.group(), match.start()
        inside = any(kind == "function" for kind, *_ in stack)
        if mark == "{":
            head = code[head_start:at]
            kind = "value" if parentheses or inside else classify(head)
            stack.append((kind, at, head, parentheses))
            parentheses = 0
            if kind != "value":
                head_start = at + 1
        elif mark == "}" and stack:
            kind, start, head, parentheses = stack.pop()
            if kind == "function":
                first = line_of(code, start)
                found.append(Function(first, line_of(code, at) - first + 1, _name(head)))
            if kind != "value":
                head_start = at + 1
        elif mark in "()":
            parentheses = max(0, parentheses + (1 if mark == "(" else -1))
        elif mark == ";" and not parentheses:
            head_start = at + 1
    return found
