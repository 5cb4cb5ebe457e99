#!/usr/bin/env python3
"""Renders chat templates with jinja2 in Hugging Face's settings: a test compares byte for byte.

    python3 tools/golden_chat.py --out tests/apps/data/golden_chat.json

The output is an object:
    with, conversations  what templates are rendered with; a template of tests/apps/data/chat (or "model", the shipped one), the
                         number of what it is rendered with, and its "text", or null where it raises an exception
    pieces_with, pieces  the same of small templates, each with its "source"
The settings are those of transformers.utils.chat_template_utils. Needs: jinja2 3.1. The time is 30 November 2024, 10:40, UTC.
"""
import argparse
import datetime
import json
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.sandbox
from golden_chat_pieces import PIECES, WITH

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/apps/data/chat"
NOW = datetime.datetime(2024, 11, 30, 10, 40)


class Generation(jinja2.ext.Extension):
    """{% generation %}, whose body Hugging Face notes for training."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = NOW.strftime
    return made


def message(role, content, **more):
    return {"role": role, "content": content, **more}


TOOL = {"type": "function", "function": {
    "name": "weather", "description": "The \"weather\" of a <town> in °C", "parameters": {
        "type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer", "enum": [1, 2, 3]}},
        "required": ["town"], "items": [], "none": {}}}}
CALL = message("assistant", "", tool_calls=[{
    "id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": {"town": "Köln", "warm": 20.5, "far": None}}}])
RESULT = message("tool", "{\"degrees\": 20.5}", name="weather", tool_call_id="abcdefghi")
CONVERSATIONS = [
    [message("user", "Good morrow")],
    [message("system", "Be brief.\n"), message("user", "  Who's there?\n")],
    [message("user", "One"), message("assistant", " Two \n"), message("user", "Three <|im_end|>")],
    [message("system", "Ä é 漢字"), message("user", "x\u3000"), message("assistant", "<think>\nhm\n</think>\n\n42"), message("user", "\u00a0y")],
    [message("user", "q"), message("assistant", "a", reasoning_content="\nbecause\n")],
    [message("assistant", "I begin"), message("user", "No")],
    [message("user", "a"), message("user", "b")],
    [message("user", "")],
    [message("user", [{"type": "text", "text": "part"}, {"type": "image"}, {"type": "text", "text": "two"}])],
    [message("user", "And the weather?"), CALL, RESULT, RESULT, message("user", "Thanks")],
    [message("narrator", "Exeunt")],
]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


def situations():
    for messages in CONVERSATIONS:
        for asks in (True, False):
            yield {"messages": messages, "add_generation_prompt": asks, "tools": None, "documents": None, **SPECIAL}
    yield {"messages": CONVERSATIONS[3], "add_generation_prompt": True, "enable_thinking": False, "tools": None, **SPECIAL}
    yield {"messages": CONVERSATIONS[9], "add_generation_prompt": True, "tools": [TOOL, TOOL], **SPECIAL}
    yield {"messages": CONVERSATIONS[1], "add_generation_prompt": True, "tools": [TOOL], "date_string": "today", **SPECIAL}


def rendered(made, source, names):
    """The text; None where the template raises an exception of any kind."""
    try:
        return made.from_string(source).render(**names)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError, KeyError, OverflowError, SyntaxError, AttributeError):
        return None


def templates():
    yield "model", json.loads((ROOT / "apps/llama/model/tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    for file in sorted(DATA.glob("*.jinja")):
        yield file.stem, file.read_text(encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    made, all_situations = environment(), list(situations())
    conversations = [{"template": name, "with": i, "text": rendered(made, source, names)}
                     for name, source in templates() for i, names in enumerate(all_situations)]
    pieces = [{"source": source, "text": rendered(made, source, WITH)} for source in PIECES]
    out = {"with": all_situations, "conversations": conversations, "pieces_with": WITH, "pieces": pieces}
    options.out.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    failed = sum(one["text"] is None for one in conversations + pieces)
    print(f"{len(conversations)} conversations and {len(pieces)} pieces, of which {failed} raise an exception")


if __name__ == "__main__":
    main()
