#!/usr/bin/env python3
"""Trains the small Llama that ships in apps/llama/model.

    python3 tools/train_llama.py --out apps/llama/model --seconds 150

Input:  apps/llama/data/tinyshakespeare.txt; its last tenth is the validation text and is never trained on.
Output: config.json, generation_config.json, model.safetensors (bf16), tokenizer.json, tokenizer_config.json
        and training.json (losses in nats, steps, seed, versions). The folder stays under 8,000,000 bytes.
Needs:  torch 2.11, transformers 5, tokenizers 0.23, safetensors 0.8.

The corpus is small (1.1 MB), so the work is in not learning it by heart: dropout on every residual branch,
weight decay, random window offsets, BPE-dropout (Provilkov et al. 2020), an average of the weights. On a GPU
several settings ("arms") train side by side and the one with the best validation loss is kept. The files are
written anew at every best evaluation, so a run that is cut short leaves a usable model behind. A run with
--steps N and --sweep 1 follows the same schedule each time; without --steps the schedule follows the clock.
"""
import argparse
import copy
import datetime
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from llama_parts import (CORPUS, END_OF_TEXT, Windows, attempt, encode_copies, folder_size, make_config,
                         make_model, make_optimizer, save_model, save_tokenizer, split_corpus, token_losses,
                         train_tokenizer, validation_loss, versions, write_report)

SIZE_LIMIT = 8_000_000
ARMS = [  # (dropout, weight decay, peak learning rate)
    (0.20, 0.1, 1.0e-3),
    (0.30, 0.3, 1.0e-3),
    (0.30, 1.0, 1.5e-3),
    (0.40, 0.3, 1.5e-3),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the model's files")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--seconds", type=float, default=150, help="training time of each arm")
    parser.add_argument("--steps", type=int, default=0, help="train so many steps, not by the clock")
    parser.add_argument("--seed", type=int, default=1623)
    parser.add_argument("--sweep", type=int, default=-1, help="arms side by side; -1: all on a GPU, else one")
    parser.add_argument("--dropout", type=float, default=ARMS[1][0])
    parser.add_argument("--weight-decay", type=float, default=ARMS[1][1])
    parser.add_argument("--lr", type=float, default=ARMS[1][2])
    parser.add_argument("--batch", type=int, default=32, help="windows in a step")
    parser.add_argument("--bpe-dropout", type=float, default=0.1)
    parser.add_argument("--copies", type=int, default=24, help="BPE-dropout encodings of the training text")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--tiny", action="store_true", help="a toy model, to try the script out on a CPU")
    return parser.parse_args()


class Trainer:
    """Trains one arm: `run` returns the report that is also in training.json."""

    def __init__(self, args):
        import torch

        self.torch, self.args = torch, args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        args.out.mkdir(parents=True, exist_ok=True)
        self.length = 64 if args.tiny else 512
        self.prepare_data()
        config = make_config(self.tokenizer.get_vocab_size(), self.end_of_text, args.tiny)
        self.model = make_model(config, args.dropout, self.device)
        self.average = copy.deepcopy(self.model).eval().requires_grad_(False)
        self.forward = torch.compile(self.model) if args.compile else self.model
        self.optimizer = make_optimizer(self.model, args.lr, args.weight_decay, self.device)
        self.best, self.best_progress, self.step, self.begin = math.inf, 0.0, 0, time.time()
        parameters = sum(p.numel() for p in self.model.parameters())
        print(f"{parameters} parameters on {self.device}, dropout {args.dropout}, weight decay "
              f"{args.weight_decay}, peak learning rate {args.lr}", flush=True)

    def prepare_data(self):
        train, self.held_out = split_corpus(self.args.corpus)
        self.tokenizer = train_tokenizer(train)
        self.end_of_text = self.tokenizer.token_to_id(END_OF_TEXT)
        copies = 1 if self.args.tiny else self.args.copies
        encodings = encode_copies(self.tokenizer, train, copies, self.args.bpe_dropout)
        self.held_out_ids = self.tokenizer.encode(self.held_out).ids
        newline = self.tokenizer.token_to_id("\u010a")
        self.windows = Windows(encodings, newline, self.end_of_text, self.length, self.device, self.args.seed)
        save_tokenizer(self.tokenizer, self.args.out)
        print(f"{len(encodings[0])} training tokens, {len(self.held_out_ids)} validation tokens, "
              f"{len(encodings)} encodings", flush=True)

    def progress(self):
        if self.args.steps:
            return self.step / self.args.steps
        return (time.time() - self.begin) / self.args.seconds

    def train_step(self, progress):
        torch = self.torch
        cosine = 0.02 + 0.49 * (1 + math.cos(math.pi * min(progress, 1)))
        rate = self.args.lr * min(1, (self.step + 1) / 200, cosine)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        plain_share = 0.5 if progress < 0.75 else 1.0
        inputs, targets = self.windows.draw(8 if self.args.tiny else self.args.batch, plain_share)
        self.model.train()
        with torch.autocast(self.device, dtype=torch.bfloat16):
            loss = token_losses(self.forward, inputs, targets).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.update_average()
        return loss.detach()

    def update_average(self):
        share = max(1 - 0.997, 9 / (self.step + 9))
        with self.torch.no_grad():
            self.torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), share)

    def evaluate(self, progress, loss):
        value = validation_loss(self.average, self.held_out_ids, self.length, self.length, self.device)
        mark = ""
        if value < self.best:
            self.best, self.best_progress, mark = value, progress, " *"
            save_model(self.average, self.args.out)
            write_report(self.args.out, self.report())
        print(f"step {self.step:6d}  {100 * progress:5.1f}%  {time.time() - self.begin:6.1f} s  "
              f"train {loss.item():.4f}  validation {value:.4f}{mark}", flush=True)

    def report(self):
        tokens_per_byte = len(self.held_out_ids) / len(self.held_out.encode())
        return {
            "val_loss_per_token": self.best, "val_loss_per_byte": self.best * tokens_per_byte,
            "val_windows": f"{self.length} tokens, stride {self.length}",
            "val_bytes": len(self.held_out.encode()), "val_tokens": len(self.held_out_ids),
            "steps": self.step, "seconds": round(time.time() - self.begin, 1),
            "seed": self.args.seed, "date": datetime.date.today().isoformat(),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "dropout": self.args.dropout, "weight_decay": self.args.weight_decay, "peak_lr": self.args.lr,
            "batch": self.args.batch, "bpe_dropout": self.args.bpe_dropout, "compile": self.args.compile,
            "device": self.torch.cuda.get_device_name() if self.device == "cuda" else "cpu",
            "versions": versions(),
        }

    def run(self):
        next_evaluation = 0.04
        self.begin = time.time()
        while (progress := self.progress()) < 1:
            loss = self.train_step(progress)
            if progress < next_evaluation:
                continue
            next_evaluation = progress + 0.02
            attempt("evaluation", lambda: self.evaluate(progress, loss))
            if progress - self.best_progress > 0.4:
                print("no better for 40% of the run: stop", flush=True)
                break
        attempt("evaluation", lambda: self.evaluate(min(self.progress(), 1), loss))
        if self.best == math.inf:
            save_model(self.average, self.args.out)
            write_report(self.args.out, self.report())


def relay(label, pipe):
    for line in pipe:
        print(f"[{label}] {line}", end="", flush=True)


def start_arm(args, arm, out, seed, threads):
    dropout, decay, lr = arm
    command = [sys.executable, __file__, "--out", str(out), "--corpus", str(args.corpus), "--sweep", "1",
               "--seconds", str(args.seconds), "--steps", str(args.steps), "--seed", str(seed),
               "--batch", str(args.batch), "--bpe-dropout", str(args.bpe_dropout),
               "--copies", str(args.copies),
               "--dropout", str(dropout), "--weight-decay", str(decay), "--lr", str(lr)]
    command += ["--compile"] if args.compile else []
    command += ["--tiny"] if args.tiny else []
    environment = {**os.environ, "FLYWHEEL_TRAIN_ARM": "1", "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    thread = threading.Thread(target=relay, args=(out.name, process.stdout))
    thread.start()
    return process, thread


def run_arms(args, count):
    scratch = Path(tempfile.mkdtemp(prefix="train-llama-"))
    outs = [scratch / f"arm{i}" for i in range(count)]
    threads = max(1, (os.cpu_count() or 1) // count)  # arms that share cores must not spin on each other's
    running = [start_arm(args, ARMS[i], outs[i], args.seed + i, threads) for i in range(count)]
    for process, thread in running:
        process.wait()
        thread.join()
    scores = {out: json.loads((out / "training.json").read_text())["val_loss_per_token"]
              for out in outs if (out / "training.json").is_file()}
    if not scores:
        sys.exit("no arm left a model: see its output above")
    best = min(scores, key=scores.get)
    print("validation by arm: " + ", ".join(f"{out.name} {score:.4f}" for out, score in scores.items()))
    args.out.mkdir(parents=True, exist_ok=True)
    for file in best.iterdir():
        shutil.copy(file, args.out / file.name)
    shutil.rmtree(scratch)


def check_files(out, corpus, length, device):
    """Reloads the saved files in float32 and puts their own validation loss in training.json."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).to(device).eval()
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    _, held_out = split_corpus(corpus)
    ids = tokenizer.encode(held_out).ids
    torch.set_float32_matmul_precision("highest")
    loss = validation_loss(model, ids, length, length // 4, device)
    report = json.loads((out / "training.json").read_text())
    report.update(val_loss_per_token=loss, val_loss_per_byte=loss * len(ids) / len(held_out.encode()),
                  val_windows=f"{length} tokens, stride {length // 4}, float32, from the saved files")
    write_report(out, report)
    print(json.dumps(report, indent=2))
    return model, tokenizer


def show_samples(model, tokenizer, device):
    import torch

    prompt = torch.tensor([tokenizer.encode("ROMEO:\n").ids], device=device)
    sampled = {"do_sample": True, "temperature": 0.8, "top_k": 50}
    for label, options in (("greedy", {"do_sample": False}), ("sampled, temperature 0.8, top-k 50", sampled)):
        torch.manual_seed(1)
        ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=200,
                             pad_token_id=0, **options)[0]
        print(f"---- {label} ----\n{tokenizer.decode(ids.tolist())}", flush=True)


def main():
    args = parse_arguments()
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count = args.sweep if args.sweep >= 1 else (len(ARMS) if device == "cuda" else 1)
    if count == 1:
        Trainer(args).run()
    else:
        run_arms(args, min(count, len(ARMS)))
    if os.environ.get("FLYWHEEL_TRAIN_ARM"):
        return
    length = 64 if args.tiny else 512
    checked = attempt("check of the saved files", lambda: check_files(args.out, args.corpus, length, device))
    if checked:
        attempt("sampling", lambda: show_samples(*checked, device))
    size = folder_size(args.out)
    print(f"{size} bytes in {args.out} (limit {SIZE_LIMIT})")
    if size > SIZE_LIMIT or not checked:
        sys.exit(1)


if __name__ == "__main__":
    main()
