"""What the first comment of a header says of who includes it."""
import os
import re

_HEAD = re.compile(r"\A(?://.*\n)+")
_CLAIM = re.compile(r"([^.:;]*(?:\.(?:hpp|cuh|cpp|cu)\b[^.:;]*)+?) includes? (?:it|this header)\b")
_FILE = re.compile(r"[\w/]+\.(?:hpp|cuh|cpp|cu)\b")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def claimed(text):
    """The files that the header's first comment says include it."""
    head = _HEAD.match(text)
    if not head:
        return []
    said = " ".join(line.lstrip("/ ") for line in head.group().splitlines())
    return [name for claim in _CLAIM.finditer(said) for name in _FILE.findall(claim.group(1))]


def _includes(path, name, texts):
    """Whether a file of that name includes the header."""
    for other, text in texts.items():
        if not ("/" + other).endswith("/" + name):
            continue
        if any(os.path.basename(found) == os.path.basename(path) for found in _INCLUDE.findall(text)):
            return True
    return False


def false_claims(texts):
    """A line for each claim that is not true. `texts`: the library's files, by path."""
    for path, text in sorted(texts.items()):
        for name in claimed(text):
            if not _includes(path, name, texts):
                yield f"{path}: says that {name} includes it, and it does not: name who does, or drop the sentence"
