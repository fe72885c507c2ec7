#!/usr/bin/env python3
"""Prints the greedy continuation of each prompt file, for a look at a model.

    python3 sample.py MODEL prompt.txt [...] --tokens 100

Runs on the CPU through transformers, whose bits are not those of the example's
transcripts: a near tie may fall the other way.
"""
import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.no_grad()
def greedy(model, prompt: list[int], count: int) -> list[int]:
    """Returns up to `count` tokens that follow `prompt`, by plain argmax."""
    cache, ids, out = None, torch.tensor([prompt]), []
    while len(out) < count:
        answer = model(input_ids=ids, past_key_values=cache, use_cache=True)
        cache, ids = answer.past_key_values, answer.logits[:, -1:].argmax(-1)
        out.append(ids.item())
        if out[-1] == model.config.eos_token_id:
            break
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("prompts", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=100)
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16).eval()
    for path in args.prompts:
        text = path.read_text(encoding="utf-8")
        prompt = tokenizer(text)["input_ids"]
        out = greedy(model, prompt, args.tokens)
        fours = [tuple(out[i : i + 4]) for i in range(len(out) - 3)]
        fresh = len(set(fours)) / max(1, len(fours))
        print(f"--- {path}: {len(prompt)} + {len(out)} tokens, {fresh:.0%} of 4-token runs differ")
        print(f"{text}[...]{tokenizer.decode(out)}")


if __name__ == "__main__":
    main()
