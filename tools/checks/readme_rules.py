"""What the README promises about the tree: quotes that are verbatim, every numbered app, five minutes of reading; and that the
links of all Markdown files lead somewhere.

A quote is a fenced block right after the line <!-- quote: PATH -->, and holds the whole file.
"""
import os
import re

from source_text import files, line_of, read

README = "README.md"
MUST_QUOTE = "apps/01_hello/main.cu"
MOST_LINES = 170

_QUOTE = re.compile(r"^<!-- quote: (?P<path>\S+) -->\n(?P<fence>```\w*\n(?P<body>.*?)^```$)?", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_APP = re.compile(r"apps/\d\d_\w+(?=/)")


def quote_faults(root, text):
    """A line for each quote that is not the file it names."""
    quotes = list(_QUOTE.finditer(text))
    if MUST_QUOTE not in {quote["path"] for quote in quotes}:
        yield f"{README}: does not quote {MUST_QUOTE}; put <!-- quote: {MUST_QUOTE} --> above the block that holds it"
    for quote in quotes:
        path, place = quote["path"], f"{README}:{line_of(text, quote.start())}"
        if not os.path.isfile(os.path.join(root, path)):
            yield f"{place}: quotes {path}, which is not there"
        elif quote["fence"] is None:
            yield f"{place}: no fenced block follows; put the whole of {path} there"
        elif quote["body"] != read(root, path):
            yield f"{place}: the block is not {path} as it is; copy the file anew"


def link_faults(root, path):
    """A line for each link of a Markdown file into the tree that leads nowhere."""
    text, folder = read(root, path), os.path.join(root, os.path.dirname(path))
    prose = _FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block.group()), text)
    for link in _LINK.finditer(prose):
        target = link["target"].split("#")[0]
        if "://" in target or not target:
            continue
        if not os.path.exists(os.path.join(folder, target)):
            yield f"{path}:{line_of(prose, link.start())}: links to {target}, which is not there"


def app_faults(root, text):
    """A line for each numbered app that has no link."""
    for app in sorted({match.group() for match in map(_APP.match, files(root)) if match}):
        if f"]({app}" not in text:
            yield f"{README}: has no link to {app}; add it to the table of what a program can do"


def length_faults(text):
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield f"{README}: has {lines} lines, and {MOST_LINES} are to be enough: move what a newcomer can do without to a room's README"


def faults(root):
    """All findings for the tree at root, each with its place and its remedy."""
    if not os.path.isfile(os.path.join(root, README)):
        return [f"{README}: is not there"]
    text = read(root, README)
    links = [fault for path in files(root) if path.endswith(".md") for fault in link_faults(root, path)]
    return [*quote_faults(root, text), *links, *app_faults(root, text), *length_faults(text)]
