"""The words of the library's identifiers: plain and field words, which words.txt lists, and the terms of the glossary."""
import os
import re

from source_text import LIBRARY, blank, files, is_cpp, line_of, read

GLOSSARY = "runtime/README.md"
LIST = "tools/checks/words.txt"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_TERM = re.compile(r"^\| (?P<term>[a-z ]+) \| .* \| \[", re.MULTILINE)


def words_of(identifier):
    return [word.lower() for word in _WORD.findall(identifier)]


def terms(root):
    """The glossary's terms, each as its words."""
    text = read(root, GLOSSARY)
    return [match["term"].split() for match in _TERM.finditer(text[text.find("## Glossary"):])]


def identifiers(root):
    """Each identifier of the library and where it stands first."""
    found = {}
    for path in files(root):
        if path.split("/")[0] in LIBRARY and is_cpp(path):
            text = blank(read(root, path), strings=True)
            for match in _IDENTIFIER.finditer(text):
                if match.group() not in found:
                    found[match.group()] = f"{path}:{line_of(text, match.start())}"
    return found


def _follows(term, words):
    return any(words[at:at + len(term)] == term for at in range(len(words)))


def word_faults(root):
    """A line for each word that nobody agreed on, and for each term and listed word that is not used."""
    if not os.path.isfile(os.path.join(root, LIST)):
        return [f"{LIST}: is not there"]
    listed, glossary, used = set(read(root, LIST).split()), terms(root), identifiers(root)
    known = listed | {word for term in glossary for word in term}
    split = {name: words_of(name) for name in used}
    faults = []
    for name, words in sorted(split.items()):
        strange = sorted(set(words) - known)
        if strange:
            faults.append(f"{used[name]}: {name}: '{strange[0]}' is neither in {LIST} nor in the glossary of {GLOSSARY}. Use the "
                          "field's word; a plain word goes into the list, a word of our own into the glossary")
    faults += [f"{GLOSSARY}: '{' '.join(term)}' is in the glossary, and no identifier has it" for term in glossary
               if not any(_follows(term, words) for words in split.values())]
    spoken = {word for words in split.values() for word in words}
    return faults + [f"{LIST}: '{word}' is in no identifier any more: take it out" for word in sorted(listed - spoken)]
