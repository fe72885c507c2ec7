#!/usr/bin/env python3
"""Trains the tiny Qwen3 model of this example on the corpus of `prepare.py`.

    python3 train.py WORK OUT --layers 2 --intermediate 512 --vocab 1536 --steps 4000 --noise 0.2

Writes a Hugging Face folder to OUT (bf16 weights, the tied embedding once) and
prints losses in bits per byte, which compare across vocabularies. Fused GPU
kernels add in no fixed order, so two runs give close but not equal weights.
"""
import argparse
import json
import math
import shutil
import time
from pathlib import Path

import torch
import transformers
from torch.nn import functional
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

CONTEXT = 1024  # tokens in one training window, and the model's position limit
BATCH = 16  # windows in one step
WARMUP_STEPS = 200
LOG_EVERY = 250  # steps


def model_config(args: argparse.Namespace) -> Qwen3Config:
    """Returns the architecture; every matrix side is a multiple of 128."""
    return Qwen3Config(
        vocab_size=args.vocab,
        hidden_size=256,
        intermediate_size=args.intermediate,
        num_hidden_layers=args.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=128,
        hidden_act="silu",
        max_position_embeddings=CONTEXT,
        max_window_layers=args.layers,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
        attention_bias=False,
        eos_token_id=0,
    )


def mean_loss(model, inputs, targets):
    """Returns the mean cross entropy in nats per token."""
    # The dictionary says "plain causal attention" and skips the mask builder.
    logits = model(input_ids=inputs, attention_mask={"full_attention": None}, use_cache=False).logits
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def train(model, tokens, args) -> None:
    """Trains `model` for `args.steps` steps: AdamW, warm-up, cosine to zero."""
    device = tokens.device
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": args.decay}, {"params": plain, "weight_decay": 0.0}],
        lr=args.lr, betas=(0.9, 0.95), fused=device.type == "cuda",
    )
    # The text is a ring, so its first and last tokens are drawn as often as any.
    ring = torch.cat([tokens, tokens[: CONTEXT + 1]])
    window = torch.arange(CONTEXT + 1, device=device)
    loss_of = torch.compile(mean_loss) if args.compile else mean_loss

    begun = time.time()
    for step in range(args.steps):
        starts = torch.randint(len(tokens), (BATCH, 1), device=device)
        batch = ring[starts + window]
        # Some input tokens are swapped for random ones: a model that learns the
        # book by heart from clean text knows no way on from a line not in it.
        swapped = torch.rand(BATCH, CONTEXT, device=device) < args.noise
        inputs = torch.where(swapped, torch.randint_like(batch[:, :-1], args.vocab), batch[:, :-1])
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = loss_of(model, inputs, batch[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = args.lr * min(1.0, (step + 1) / WARMUP_STEPS) * 0.5 * (1.0 + math.cos(math.pi * step / args.steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % LOG_EVERY == 0 or step == args.steps - 1:
            print(f"step {step} loss {loss.item():.4f} rate {rate:.2e} second {time.time() - begun:.0f}", flush=True)


@torch.no_grad()
def bits_per_byte(model, tokens, text_bytes: int) -> float:
    """Returns the model's cost of `tokens`, read in windows that start afresh."""
    inputs = torch.cat([torch.zeros_like(tokens[:1]), tokens[:-1]])  # end-of-text before the first chapter
    nats = 0.0
    whole = len(tokens) // CONTEXT * CONTEXT
    parts = [(s, min(s + BATCH * CONTEXT, whole)) for s in range(0, whole, BATCH * CONTEXT)]
    for start, end in parts:
        piece = [t[start:end].view(-1, CONTEXT) for t in (inputs, tokens)]
        nats += mean_loss(model, *piece).item() * (end - start)
    if whole < len(tokens):
        nats += mean_loss(model, inputs[None, whole:], tokens[None, whole:]).item() * (len(tokens) - whole)
    return nats / math.log(2) / text_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder that prepare.py wrote")
    parser.add_argument("out", type=Path, help="model folder to write")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--intermediate", type=int, required=True)
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--noise", type=float, default=0.0, help="share of input tokens swapped")
    parser.add_argument("--decay", type=float, default=0.01, help="weight decay of the matrices")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    options = " ".join(f"{key}={value}" for key, value in vars(args).items() if key not in ("work", "out"))
    print(f"{name}, PyTorch {torch.__version__}, transformers {transformers.__version__}; {options}", flush=True)

    tokenizer = PreTrainedTokenizerFast.from_pretrained(args.work / f"tokenizer-{args.vocab}")
    texts = {part: (args.work / f"{part}.txt").read_text(encoding="utf-8") for part in ("train", "valid")}
    tokens = {part: torch.tensor(tokenizer(text)["input_ids"], device=device) for part, text in texts.items()}
    size = {part: len(text.replace(tokenizer.eos_token, "").encode()) for part, text in texts.items()}

    model = Qwen3ForCausalLM(model_config(args)).to(device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(tokens['train'])} training tokens")
    train(model, tokens["train"], args)

    # The losses below are those of the weights as published: rounded to bf16.
    model = model.to(torch.bfloat16).eval()
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=0)
    model.save_pretrained(args.out)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(args.work / f"tokenizer-{args.vocab}" / file, args.out)
    result = {part: round(bits_per_byte(model, tokens[part], size[part]), 4) for part in texts}
    print("bits per byte: " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
