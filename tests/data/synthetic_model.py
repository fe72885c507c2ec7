"""Checks a synthetic checkpoint against spec/synthetic-model.md, by another hand.

    python3 tests/data/synthetic_model.py FOLDER SEED [STRIDE]

Reads the shards as they lie in the folder and computes every STRIDEth element of every tensor from the page alone,
in exact integers and fractions. Python's standard library only.
"""

import hashlib
import json
import pathlib
import sys
from fractions import Fraction
from math import isqrt

U64 = (1 << 64) - 1


def key(seed, name, stream):
    text = f"attest synth 1\n{seed}\n{name}\n{stream}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def hash_of(k, i):
    z = (k + (i + 1) * 0x9E3779B97F4A7C15) & U64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & U64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & U64
    return z ^ (z >> 31)


def octave(h, most):
    rest, zeros = h >> 8, 0
    while zeros < 2 * most and rest >> zeros & 1 == 0:
        zeros += 1
    return -(zeros // 2) if h >> 7 & 1 else zeros // 2


def spread(h, most):
    return Fraction(128 + (h & 127), 128) * Fraction(2) ** octave(h, most)


def bfloat16(value):
    """Nearest bfloat16 of a fraction, ties to even; no result here is subnormal."""
    if value == 0:
        return 0
    sign, value, exponent = (0x8000 if value < 0 else 0), abs(value), 0
    while value >= 2:
        value, exponent = value / 2, exponent + 1
    while value < 1:
        value, exponent = value * 2, exponent - 1
    return sign | (exponent + 127 << 7) + round(value * 128) - 128  # Python rounds ties to even


def element(seed, name, shape, hidden, index):
    massive = [hash_of(key(seed, "residual", "channels"), i) % hidden for i in range(-(-hidden // 1024))]
    h = hash_of(key(seed, name, "elements"), index)
    if len(shape) == 1:
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            return bfloat16(spread(h, 3))
        value = spread(h, 6) * (2 if name == "model.norm.weight" else 1)
        return bfloat16(value / 32 if index in massive else value)
    row, columns = index // shape[1], shape[1]
    bell = 2 * sum(h >> shift & 0xFFFF for shift in (0, 16, 32, 48)) - 262140
    own = 96 + (hash_of(key(seed, name, "tensor"), 0) & 63)
    row_hash = hash_of(key(seed, name, "rows"), row)
    table = name in ("model.embed_tokens.weight", "lm_head.weight")
    factor = spread(row_hash, 0 if table else 2) / 2
    if name.endswith("down_proj.weight") and row in massive:
        factor *= 32 + (row_hash >> 58)
    return bfloat16(Fraction(bell, 1 << 17) * Fraction(isqrt(3 * 2**32 // columns), 1 << 16) * Fraction(own, 128) * factor)


def main(folder, seed, stride=1):
    folder, seed, stride = pathlib.Path(folder), int(seed), int(stride)
    config = json.loads((folder / "config.json").read_text())
    compared = different = 0
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            del header["__metadata__"]
            assert list(header) == sorted(header), path
            for name, place in header.items():
                start, end = place["data_offsets"]
                as_name = "model.embed_tokens.weight" if config["tie_word_embeddings"] and name == "lm_head.weight" else name
                for index in range(0, (end - start) // 2, stride):
                    file.seek(8 + length + start + 2 * index)
                    found = int.from_bytes(file.read(2), "little")
                    compared += 1
                    different += found != element(seed, as_name, place["shape"], config["hidden_size"], index)
    print(f"{compared} elements compared, {different} differ")
    return different != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
