"""The parts of train_llama.py that know no schedule: corpus, tokenizer, model, and the files it writes."""
import copy
import json
import math
import os
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "apps/llama/data/tinyshakespeare.txt"
END_OF_TEXT = "<|endoftext|>"
# Speeches: the user is Romeo, the model is Juliet.
CHAT_TEMPLATE = ("{% for message in messages %}{{ {'user': 'ROMEO:\\n', 'assistant': 'JULIET:\\n'}[message.role] or '' }}"
                 "{{ message.content | trim + '\\n\\n' }}{% endfor %}{% if add_generation_prompt %}JULIET:\n{% endif %}")


def split_corpus(path):
    text = path.read_text(encoding="utf-8")
    cut = text.index("\n\n", int(len(text) * 0.9)) + 2
    return text[:cut], text[cut:]


def train_tokenizer(text, vocabulary=1024):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def encode_copies(tokenizer, text, copies, dropout):
    """The plain encoding first, then `copies` encodings in which merges were skipped at random."""
    plain = tokenizer.encode(text).ids
    if copies == 0 or dropout == 0:
        return [plain]
    tokenizer.model.dropout = dropout
    noisy = [encoding.ids for encoding in tokenizer.encode_batch([text] * copies)]
    tokenizer.model.dropout = None
    return [plain] + noisy


class Windows:
    """Draws batches of windows; one in twenty starts at a speech, behind the end-of-text token."""

    def __init__(self, encodings, newline, end_of_text, length, device, seed):
        import torch

        self.torch, self.length, self.device, self.end_of_text = torch, length, device, end_of_text
        self.tokens = torch.cat([torch.tensor(ids) for ids in encodings]).to(device)
        sizes = torch.tensor([len(ids) for ids in encodings])
        self.begins = (sizes.cumsum(0) - sizes).to(device)
        self.spans = (sizes - length - 1).to(device)
        breaks = (self.tokens[1:-1] == newline) & (self.tokens[:-2] == newline)
        speeches = breaks.nonzero().flatten() + 2
        self.speeches = speeches[speeches + length + 1 < len(self.tokens)]
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def draw(self, batch, plain_share):
        torch, random = self.torch, self.uniform
        choice = (random(batch) * (len(self.begins) - 1)).long() + 1
        choice = torch.where(random(batch) < plain_share, 0, choice).clamp(max=len(self.begins) - 1)
        start = self.begins[choice] + (random(batch) * self.spans[choice]).long()
        speech = self.speeches[(random(batch) * len(self.speeches)).long()] - 1
        opening = random(batch) < 0.05
        start = torch.where(opening, speech, start)
        window = self.tokens[start[:, None] + torch.arange(self.length + 1, device=self.device)]
        window[:, 0] = torch.where(opening, self.end_of_text, window[:, 0])
        return window[:, :-1], window[:, 1:]

    def uniform(self, count):
        return self.torch.rand(count, device=self.device, generator=self.generator)


def make_config(vocabulary, end_of_text, tiny):
    from transformers import LlamaConfig

    shape = dict(hidden_size=256, intermediate_size=576, num_hidden_layers=6, num_attention_heads=8,
                 num_key_value_heads=2, head_dim=32)
    if tiny:
        shape = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
                     num_key_value_heads=1, head_dim=32)
    return LlamaConfig(
        vocab_size=vocabulary, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, attention_bias=False, mlp_bias=False,
        bos_token_id=end_of_text, eos_token_id=end_of_text, pad_token_id=None,
        initializer_range=0.02, **shape)


def make_model(config, dropout, device):
    import torch
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(config).to(device=device, dtype=torch.float32)
    shrink = 1 / math.sqrt(2 * config.num_hidden_layers)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_(shrink)
            layer.mlp.down_proj.weight.mul_(shrink)
    add_dropout(model, dropout)
    return model


def add_dropout(model, p):
    """Llama has none of its own: hooks drop parts of the embedding and of what each branch adds."""
    import torch.nn.functional as functional

    def drop(module, _, output):
        if not module.training or p == 0:
            return output
        if isinstance(output, tuple):
            return (functional.dropout(output[0], p), *output[1:])
        return functional.dropout(output, p)

    model.model.embed_tokens.register_forward_hook(drop)
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = p / 2
        layer.self_attn.register_forward_hook(drop)
        layer.mlp.register_forward_hook(drop)


def make_optimizer(model, lr, weight_decay, device):
    import torch

    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.97), fused=device == "cuda")


def token_losses(model, inputs, targets):
    import torch.nn.functional as functional

    logits = model(input_ids=inputs, use_cache=False).logits.float()
    losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


def validation_loss(model, ids, length, stride, device):
    """Mean loss in nats a token; a window of `length` scores its last `stride` tokens (the first: all)."""
    import torch

    starts = range(0, len(ids) - length - 1, stride)
    windows = torch.tensor([ids[s:s + length + 1] for s in starts])
    total, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for first in range(0, len(windows), 64):
            part = windows[first:first + 64].to(device)
            losses = token_losses(model, part[:, :-1], part[:, 1:])
            scored = losses[:, -stride:]
            total, count = total + scored.sum().item(), count + scored.numel()
            if first == 0:
                lead = losses[0, :-stride]
                total, count = total + lead.sum().item(), count + lead.numel()
    return total / count


def save_tokenizer(tokenizer, out):
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT, model_max_length=512)
    wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)


def save_model(model, out):
    """Writes the weights in bf16 beside the old ones, then moves them into place."""
    import torch

    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=out))
    rounded = copy.deepcopy(model).to(device="cpu", dtype=torch.bfloat16)
    rounded.save_pretrained(draft)
    for file in draft.iterdir():
        os.replace(file, out / file.name)
    draft.rmdir()
    (out / "model.safetensors").chmod(0o644)


def write_report(out, report):
    (out / "training.json").write_text(json.dumps(report, indent=2) + "\n")


def folder_size(out):
    return sum(file.stat().st_size for file in out.iterdir() if file.is_file())


def versions():
    import safetensors
    import tokenizers
    import torch
    import transformers

    modules = (torch, transformers, tokenizers, safetensors)
    return {"python": sys.version.split()[0], **{m.__name__: m.__version__ for m in modules}}


def attempt(what, action):
    """Runs `action`; says what went wrong instead of ending the run, for what is on disk must not be lost."""
    try:
        return action()
    except Exception as error:
        print(f"{what} failed: {type(error).__name__}: {error}", flush=True)
        return None
