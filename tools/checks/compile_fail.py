#!/usr/bin/env python3
"""compile_fail.py FILE -- COMPILER ARGUMENT...

Checks that FILE does not compile and that the compiler says why in the sentence FILE promises. The first line of
FILE reads `// expect: <regular expression>`; it is searched for in the compiler's output with white space folded.
Exit status: 0 when both hold, 1 when one does not, 2 when the call or the first line is malformed.
"""
import re
import subprocess
import sys


def expected_sentence(path):
    """The regular expression of the first line of the file, or None when the line has another form."""
    with open(path, encoding="utf-8") as source:
        match = re.fullmatch(r"// expect: (.+)", source.readline().strip())
    return match.group(1) if match else None


def verdict(sentence, returncode, output):
    """None when the compiler refused the file with the sentence, else what was wrong."""
    if returncode == 0:
        return "it compiles, and must not"
    if not re.search(sentence, re.sub(r"\s+", " ", output)):
        return f"it fails to compile, but nothing in the output matches: {sentence}"
    return None


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        print(__doc__)
        return 2
    path, command = arguments[0], arguments[2:]
    sentence = expected_sentence(path)
    if sentence is None:
        print(f"{path}: the first line must read: // expect: <regular expression>")
        return 2
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    problem = verdict(sentence, done.returncode, done.stdout)
    if problem:
        print(f"{path}: {problem}\n--- the compiler said:\n{done.stdout}")
        return 1
    print(f"{path}: refused as expected: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
