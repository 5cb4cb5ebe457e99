#!/usr/bin/env python3
"""Writes what Hugging Face's libraries say about the shipped model: the golden values the tests compare with.

    python3 tools/golden_llama.py --model apps/llama/model --out tests/apps/data

golden_logits.safetensors   "ids" I32 [200], the first tokens of the validation text, and "logits" F32
                            [200, vocabulary], by transformers in float32 on a CPU, with the file's weights.
golden_tokenizer.json       for three tokenizers (the shipped one, and two small ones trained here with the
                            pre-tokenizers of Llama 3 and of Qwen 2) 200 strings, their ids and the decoded
                            text; what random ids decode to; and the ids of the shipped one with
                            add_prefix_space set.
Needs: torch, transformers 5, tokenizers 0.23, safetensors 0.8. No GPU; a minute.
"""
import argparse
import json
import random
from pathlib import Path

from llama_parts import CORPUS, split_corpus

POSITIONS = 200
LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_SPLIT = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")

WRITTEN = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", " \n", "\n ", "\n \n", "\t", "\t\t x", "\r\n", "a\r\nb",
    "\r", "a \r\n\r\n b", "a", " a", "a ", "  a  ", "Hello, world!",
    "To be, or not to be: that is the question.", "ROMEO:\nBut, soft!\n\nJULIET:\n",
    "I'll we've they're he'd it's don't I'm", "I'LL WE'VE THEY'RE HE'D IT'S DON'T I'M", "'s", "''s", "'Tis",
    "o'er ta'en", "'sweet", "x'x", "'lll", "'re're", "rock'n'roll", "'\u017f and '\u017fo",
    "it\u2019s a curly apostrophe", "0", "12", "123", "1234", "1234567", "3.14159", "1,000,000", "a1b2c3",
    " 42 ", "2nd 3rd 11th", "x=1;y=22;z=333;w=4444", "\u0663\u0664\u0665 \u0967\u0968\u0969\u096a",
    "\u00bd \u00b2 \u2167 \u4e94 \u3007", "\u2460\u2461\u2462\u2463", "!", "!!!", "?!...", " ...", "a.b",
    "a..b", "(x)", "[y]{z}", "--help", "a--b", "http://example.org/a?b=c&d=e#f", "$5.00", "#tag @you",
    "e-mail", "snake_case", "CamelCase", "<b>bold</b>", "if (a && b) {\n  return c;\n}\n", "/* x */\n\n",
    "a;\n\n\nb", "...\n\n\n", "}\r\n\r\n", "na\u00efve caf\u00e9 r\u00e9sum\u00e9", "\u00dcber Stra\u00dfe",
    "\u0141\u00f3d\u017a", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\uc548\ub155\ud558\uc138\uc694",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643", "\u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\U0001f600",
    "hi \U0001f600!", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u2764\ufe0f", "\U0001d54f\U0001d7d9",
    "\U00020000\U0002a6d6", "\u00a0", "a\u00a0b", "\u00a0\u00a0x", "\u2003wide\u2003space",
    "\u3000\u3000\u5168\u89d2", "a\u2028b\u2029c", "a\u0085b", "\u200bzero\u200bwidth", "\ufeffbom", "\x00",
    "a\x00b", "\x1b[0m", "\x7f", "\x1c\x1d\x1e\x1f x", "\x0b\x0c x", "tab\tand  two",
    "  indented\n    more\n\tline", "end of line   \nnext", "x \t\n\t y", "\u20ac100 \u00a35 \u00a51",
    "\u00ab quoted \u00bb", "\u201cdouble\u201d \u2018single\u2019", "\u2014dash\u2014", "a\u0308 o\u0308",
    "\u01c5 \u02b0 \u00aa", "<|endoftext|>", "<|endoftext|>ROMEO:\n", "a<|endoftext|>b", "<|endoftext",
    "<|endoftext|><|endoftext|>", "<|begin_of_text|>x <|eot_id|>\n",
]
ALPHABETS = ["abc defg  hiT.O'sl\n", "01 2a3,.-\n\t", "'stmdrevl SLIm", " \n\r\t\u00a0x",
             "\u00e9\u00df\u0416\u4e2d\u3042\U0001f600 a1,\n"]


def cases_of(held_out):
    """200 strings: those written out above, lines of the validation text, and noise from a few alphabets."""
    draw = random.Random(7)
    strings = list(dict.fromkeys(WRITTEN))
    for _ in range(25):
        begin = draw.randrange(len(held_out) - 200)
        strings.append(held_out[begin:begin + draw.randrange(1, 160)])
    while len(strings) < 200:
        strings.append("".join(draw.choices(draw.choice(ALPHABETS), k=draw.randrange(2, 40))))
    return strings


def encoded(tokenizer, strings):
    rows = []
    for text in strings:
        ids = tokenizer.encode(text).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    return rows


def with_prefix_space(tokenizer, strings):
    from tokenizers import Tokenizer, pre_tokenizers

    other = Tokenizer.from_str(tokenizer.to_str())
    other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return [{"text": text, "ids": other.encode(text).ids} for text in strings[:60]]


def decoded_noise(tokenizer):
    """Random ids: their bytes are mostly no UTF-8, so this shows where replacement characters go."""
    draw = random.Random(11)
    rows = []
    for _ in range(60):
        ids = [draw.randrange(1, draw.choice([260, 1024])) for _ in range(draw.randrange(1, 25))]
        rows.append({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    return rows


def train_split_tokenizer(pattern, texts, specials, template, normalizer=None):
    """A 600-token byte-level tokenizer behind the given regular expression."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    size = 600 - len(specials)
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(specials)
    byte_level = processors.ByteLevel(trim_offsets=False)
    if template:
        pairs = [(specials[0], tokenizer.token_to_id(specials[0]))]
        byte_level = processors.Sequence([byte_level, processors.TemplateProcessing(
            single=f"{specials[0]} $A", pair=f"{specials[0]} $A {specials[0]} $B", special_tokens=pairs)])
    tokenizer.post_processor = byte_level
    return tokenizer


def like_llama3(tokenizer):
    """Merges as "a b" strings and ignore_merges set, as in Llama 3's file; one whole word loses its merge, so
    that only ignore_merges can find it."""
    from tokenizers import Tokenizer

    data = json.loads(tokenizer.to_str())
    merges = data["model"]["merges"]
    word = next(pair for pair in reversed(merges) if "".join(pair) == "\u0120the")
    data["model"]["merges"] = [" ".join(pair) for pair in merges if pair != word]
    data["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(data)), data


def tokenizer_golden(model_folder, train, held_out):
    from tokenizers import Tokenizer, normalizers

    strings = cases_of(held_out)
    texts = [train[:200_000]] + WRITTEN * 20
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    llama3, llama3_json = like_llama3(train_split_tokenizer(LLAMA3_SPLIT, texts, specials, template=True))
    specials = ["<|endoftext|>", "<|im_start|>"]
    qwen2 = train_split_tokenizer(QWEN2_SPLIT, texts, specials, template=False, normalizer=normalizers.NFC())
    composed = [text for text in strings if normalizers.NFC().normalize_str(text) == text]
    shipped = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    return {
        "shipped": {"cases": encoded(shipped, strings), "noise": decoded_noise(shipped),
                    "prefix_space": with_prefix_space(shipped, WRITTEN)},
        "llama3": {"tokenizer": llama3_json, "cases": encoded(llama3, strings)},
        "qwen2": {"tokenizer": json.loads(qwen2.to_str()), "cases": encoded(qwen2, composed)},
    }


def write_logits(model_folder, held_out, file):
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32).eval()
    ids = Tokenizer.from_file(str(model_folder / "tokenizer.json")).encode(held_out).ids[:POSITIONS]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
    loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:])).item()
    print(f"logits {tuple(logits.shape)}, mean loss over these positions {loss:.4f} nats a token")
    save_file({"ids": torch.tensor(ids, dtype=torch.int32), "logits": logits.contiguous()}, file)
    file.chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="the model's folder")
    parser.add_argument("--out", type=Path, required=True, help="folder for the golden files")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    train, held_out = split_corpus(args.corpus)
    write_logits(args.model, held_out, args.out / "golden_logits.safetensors")
    golden = tokenizer_golden(args.model, train, held_out)
    (args.out / "golden_tokenizer.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    for file in sorted(args.out.glob("golden_*")):
        print(f"{file.name}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
