#!/usr/bin/env python3
"""Writes small random models of all families and what transformers computes for them: tests compare with it.

    python3 tools/golden_families.py --out tests/apps/data/families [MODEL...]

For each model, or those that are named, a folder of config.json, model.safetensors and golden.safetensors, the last with
    ids     I32 [48]         random ids
    logits  F32 [48, vocab]  after each of them, given those before it
    greedy  I32 [64]         the likeliest tokens one after another, after the first 8 ids
    gap     F32 [64]         by how much each of these led the second best
by transformers in float32 on a CPU with the file's weights. A model's seed is the first whose smallest gap is far
above float noise and whose greedy text is no short loop.
Needs: torch, transformers 5, safetensors. No GPU; a minute.
"""
import argparse
import json
import math
from pathlib import Path

POSITIONS, PROMPT, GREEDY = 48, 8, 64
LEAST_GAP, LEAST_DISTINCT = 0.01, 24
LOGIT_SPREAD = 2.0  # standard deviation
GAIN = 1.4  # of the matrices inside the layers: enough to make attention choose
BIAS_SPREAD = 0.7  # as much as tells, beside values that spread by GAIN

LLAMA = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", attention_bias=False,
             mlp_bias=False, vocab_size=160, hidden_size=64, rms_norm_eps=1e-5, bos_token_id=0,
             eos_token_id=[1, 2])
QWEN3 = dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_act="silu", attention_bias=False,
             use_sliding_window=False, sliding_window=None, vocab_size=160, hidden_size=64, rms_norm_eps=1e-6,
             rope_scaling=None, bos_token_id=0, eos_token_id=1)
QWEN2 = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", vocab_size=160,
             rms_norm_eps=1e-6, rope_theta=1000000.0, bos_token_id=0, eos_token_id=1, max_position_embeddings=512)
MISTRAL = dict(architectures=["MistralForCausalLM"], model_type="mistral", hidden_act="silu", vocab_size=160,
               hidden_size=64, rms_norm_eps=1e-5, rope_theta=10000.0, bos_token_id=0, eos_token_id=1,
               max_position_embeddings=512)


def llama3_scaling(factor, original):
    return dict(rope_type="llama3", factor=factor, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=original)


# Rotary settings as transformers 4 wrote them and as transformers 5 does. In each scaled model some frequency is
# kept, some is blended and some is stretched. The tuned decode takes bf16 weights and heads of 32, 64, 80, 96, 128 or 256
# values: qwen2, qwen3, both mistrals and those with heads64 to heads256 in their name. Windows are shorter than the
# texts, so that they tell.
MODELS = {
    "llama3": dict(
        LLAMA, dtype="bfloat16", tie_word_embeddings=False, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, rope_theta=500000.0,
        rope_scaling=llama3_scaling(8.0, 64)),
    "llama3_tied": dict(
        LLAMA, dtype="float32", tie_word_embeddings=True, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, head_dim=24, max_position_embeddings=1024,
        rope_parameters=dict(llama3_scaling(32.0, 32), rope_theta=500000.0)),
    "qwen3": dict(
        QWEN3, dtype="bfloat16", tie_word_embeddings=True, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
        rope_theta=1000000.0),
    "qwen3_untied": dict(
        QWEN3, dtype="float32", tie_word_embeddings=False, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=24, max_position_embeddings=512,
        rope_theta=10000.0),
    "llama3_heads64": dict(
        LLAMA, dtype="bfloat16", tie_word_embeddings=True, hidden_size=48, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=512,
        rope_parameters=dict(llama3_scaling(8.0, 64), rope_theta=500000.0)),
    "qwen3_heads64": dict(
        QWEN3, dtype="bfloat16", tie_word_embeddings=False, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=64, max_position_embeddings=512,
        rope_theta=1000000.0),
    "qwen2": dict(
        QWEN2, dtype="bfloat16", tie_word_embeddings=True, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, use_sliding_window=False, sliding_window=16,
        max_window_layers=0),
    "qwen2_heads80": dict(
        QWEN2, dtype="bfloat16", tie_word_embeddings=False, hidden_size=48, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=80),
    "qwen2_window": dict(
        QWEN2, dtype="float32", tie_word_embeddings=True, hidden_size=48, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=2, num_key_value_heads=1, use_sliding_window=True, sliding_window=16,
        max_window_layers=1),
    "mistral": dict(
        MISTRAL, dtype="bfloat16", tie_word_embeddings=False, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=None),
    "mistral_window": dict(
        MISTRAL, dtype="bfloat16", tie_word_embeddings=False, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, sliding_window=24),
    "llama_heads96": dict(
        LLAMA, dtype="bfloat16", tie_word_embeddings=False, hidden_size=48, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=96, max_position_embeddings=512,
        rope_theta=500000.0),
    "llama_heads256": dict(
        LLAMA, dtype="bfloat16", tie_word_embeddings=True, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=256, max_position_embeddings=512,
        rope_theta=500000.0),
}


def random_weight(name, shape, tied, generator):
    import torch

    noise = torch.randn(shape, generator=generator)
    if name.endswith(".bias"):
        return noise * BIAS_SPREAD
    if len(shape) == 1:
        return 1 + 0.25 * noise
    if name == "model.embed_tokens.weight" and not tied:
        return noise
    gain = LOGIT_SPREAD if name in ("lm_head.weight", "model.embed_tokens.weight") else GAIN
    return noise * gain / math.sqrt(shape[1])


def write_model(settings, seed, folder):
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM

    text = json.dumps(settings, indent=2) + "\n"
    (folder / "config.json").write_text(text)
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        shapes = {name: tuple(p.shape) for name, p in AutoModelForCausalLM.from_config(config).named_parameters()}
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, settings["dtype"])
    weights = {name: random_weight(name, shape, settings["tie_word_embeddings"], generator).to(kind)
               for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def logits_of(model, ids):
    import torch

    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


def write_greedily(model, prompt):
    """Tokens and gaps, with the whole text computed anew at each step: no cache that could be wrong."""
    ids, gaps = list(prompt), []
    for _ in range(GREEDY):
        best = logits_of(model, ids)[-1].topk(2)
        gaps.append((best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
    return ids[len(prompt):], gaps


def golden_of(folder, seed):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(1000 + seed)
    ids = torch.randint(model.config.vocab_size, (POSITIONS,), generator=generator, dtype=torch.int32)
    logits = logits_of(model, ids.tolist())
    greedy, gaps = write_greedily(model, ids.tolist()[:PROMPT])
    return {"ids": ids, "logits": logits.contiguous(), "greedy": torch.tensor(greedy, dtype=torch.int32),
            "gap": torch.tensor(gaps)}


def fit_to_compare(golden):
    return golden["gap"].min() > LEAST_GAP and len(golden["greedy"].unique()) >= LEAST_DISTINCT


def write_family(name, out, most_seeds=200):
    from safetensors.torch import save_file

    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(most_seeds):
        write_model(MODELS[name], seed, folder)
        golden = golden_of(folder, seed)
        if fit_to_compare(golden):
            save_file(golden, folder / "golden.safetensors")
            (folder / "golden.safetensors").chmod(0o644)
            return seed, golden
    raise SystemExit(f"{name}: no seed below {most_seeds} has clear choices; lower LEAST_GAP or LEAST_DISTINCT")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the models' folders")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all if none is named")
    args = parser.parse_args()
    for name in args.models:
        if name not in MODELS:
            parser.error(f"there is no model {name}: choose among {', '.join(MODELS)}")
    for name in args.models or MODELS:
        seed, golden = write_family(name, args.out)
        sizes = {file.name: file.stat().st_size for file in sorted((args.out / name).iterdir())}
        print(f"{name}: seed {seed}, logits' deviation {golden['logits'].std():.2f}, smallest gap "
              f"{golden['gap'].min():.4f}, {len(golden['greedy'].unique())} distinct tokens, {sizes}")


if __name__ == "__main__":
    main()
