"""Reads a transcript from spec/transcript.md and spec/qwen3.md alone: signature, section digests, roots, openings.

A second implementation, in Python's standard library; OpenSSL 3 checks the signature. It shares no code with the
program that writes transcripts, so that both can be wrong, but not in the same way. It computes no model.

    python3 reader.py TRANSCRIPT --config MODEL/config.json --public-key HEX
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import tempfile

CONTEXT = b"attest transcript v1"
# Steps of a layer (spec/qwen3.md): name, and columns as a product of sizes.
LAYER = [("input_layernorm", "H"), ("self_attn.q_proj", "Q"), ("self_attn.q_norm", "Q"), ("self_attn.q_rope", "Q"),
         ("self_attn.k_proj", "K"), ("self_attn.k_norm", "K"), ("self_attn.k_rope", "K"), ("self_attn.v_proj", "K"),
         ("self_attn.attention", "Q"), ("self_attn.o_proj", "H"), ("self_attn.residual", "H"),
         ("post_attention_layernorm", "H"), ("mlp.gate_proj", "I"), ("mlp.up_proj", "I"), ("mlp.silu_mul", "I"),
         ("mlp.down_proj", "H"), ("mlp.residual", "H")]
CELL = ("self_attn.k_rope", "self_attn.v_proj", "mlp.residual")
NULL = object()


def sha256(data):
    return hashlib.sha256(data).digest()


def read(data, at):
    """One CBOR item: (value, where it ends)."""
    if data[at] == 0xF6:
        return NULL, at + 1
    major, argument, at = data[at] >> 5, data[at] & 31, at + 1
    if argument >= 24:
        width = 1 << (argument - 24)
        argument, at = int.from_bytes(data[at:at + width], "big"), at + width
    if major == 0:
        return argument, at
    if major == 1:
        return -1 - argument, at
    if major == 2:
        return data[at:at + argument], at + argument
    if major == 3:
        return data[at:at + argument].decode(), at + argument
    if major == 6:
        assert argument == 18, "tag 18 is the only one"
        return read(data, at)
    items = []
    for _ in range(argument * (2 if major == 5 else 1)):
        item, at = read(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if major == 5 else items), at


def head(major, argument):
    for code, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 24:
            return bytes([major << 5 | argument])
        if argument < 1 << (8 * width):
            return bytes([major << 5 | code]) + argument.to_bytes(width, "big")


def write(value):
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    return head(4, len(value)) + b"".join(map(write, value))


def split(count):
    """The largest power of two below a count of at least 2."""
    return 1 << (count - 1).bit_length() - 1


def node(left, right):
    return sha256(b"\1" + left + right)


def root(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"")
    at = split(len(leaves))
    return node(root(leaves[:at]), root(leaves[at:]))


def leaf(header, content_digest):
    return sha256(b"\0" + write(header) + content_digest)


def verify_signature(public, message, signature):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "public").write_bytes(bytes.fromhex("302a300506032b6570032100") + public)
        (path / "message").write_bytes(message)
        (path / "signature").write_bytes(signature)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey public -rawin -in message -sigfile signature"
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


def steps(config):
    """Name, columns, element type and whether it has a row a token, of every step of a plan."""
    sizes = {"H": config["hidden_size"], "I": config["intermediate_size"],
             "Q": config["num_attention_heads"] * config["head_dim"],
             "K": config["num_key_value_heads"] * config["head_dim"]}
    yield "embed_tokens", sizes["H"], "bf16", True
    for layer in range(config["num_hidden_layers"]):
        for name, columns in LAYER:
            yield f"layers.{layer}.{name}", sizes[columns], "bf16", True
    for name, columns, dtype in (("last_token", sizes["H"], "bf16"), ("norm", sizes["H"], "bf16"),
                                 ("lm_head", config["vocab_size"], "bf16"), ("argmax", 1, "u32")):
        yield name, columns, dtype, False


def trace_headers(statement, config):
    """The header of every leaf of the trace, in order."""
    mode, plan = statement[17][1], list(steps(config))
    for number, one in enumerate(statement[15]):
        start, tokens = one[1], one[2]
        if mode == "cells":
            own = [step for step in plan if step[0].startswith("layers.") and step[0].endswith(CELL)]
            for position in range(start, start + tokens):
                for name, columns, dtype, _ in own:
                    yield ["cells", number, position, name, dtype, [columns]]
            continue
        for index, (name, columns, dtype, whole) in enumerate(plan):
            if mode == "steps" or name == "embed_tokens" or name.endswith("mlp.residual"):
                yield ["trace", number, index, name, dtype, [tokens if whole else 1, columns]]


def drawn(draw, transcript, layers, positions):
    """Cells (layer, position) of a draw: spec/verification.md, P2."""
    cells, counter, total = set(), 0, layers * positions
    limit = (2**64 - 1) // total * total
    while len(cells) < min(draw[1], total):
        digest = sha256(b"attest cells v1" + transcript + draw[2] + counter.to_bytes(8, "big"))
        counter += 1
        for word in (int.from_bytes(digest[at:at + 8], "big") for at in range(0, 32, 8)):
            if word < limit and len(cells) < draw[1]:
                cells.add((word % total % layers, word % total // layers))
    return cells if draw[1] < total else {(layer, p) for layer in range(layers) for p in range(positions)}


def needed(headers, cells, layers, ends):
    """Whether each leaf belongs to a draw: P3."""
    last = {layer: max(p for own, p in cells if own == layer) for layer, _ in cells}
    for _, _, position, name, _, _ in headers:
        layer = int(name.split(".")[1])
        if name.endswith("mlp.residual"):
            chooses = layer + 1 == layers and position in ends
            yield (layer, position) in cells or (layer + 1, position) in cells or chooses
        else:
            yield position <= last.get(layer, -1)


def rebuild(opened, leaves, nodes):
    if not any(opened):
        return next(nodes)
    if len(opened) == 1:
        return next(leaves)
    at = split(len(opened))
    return node(rebuild(opened[:at], leaves, nodes), rebuild(opened[at:], leaves, nodes))


def check_openings(opening, statement, headers, config, transcript):
    layers, positions = config["num_hidden_layers"], sum(one[2] for one in statement[15])
    opened = [True] * len(headers)
    if 1 in opening:
        ends = {one[1] + one[2] - 1 for one in statement[15]}
        opened = list(needed(headers, drawn(opening[1], transcript, layers, positions), layers, ends))
    contents, at, leaves = opening[2], 0, []
    for header in (header for header, one in zip(headers, opened, strict=True) if one):
        length = 2 * header[5][0]
        leaves.append(leaf(header, sha256(contents[at:at + length])))
        at += length
    assert at == len(contents), "the openings have other rows than are due"
    leaves, nodes = iter(leaves), iter([opening[3][at:at + 32] for at in range(0, len(opening[3]), 32)])
    assert rebuild(opened, leaves, nodes) == statement[17][3], "the openings do not lead to the root"
    assert next(leaves, None) is None and next(nodes, None) is None, "something is left over"
    return sum(opened)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("transcript", type=pathlib.Path)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--public-key", type=bytes.fromhex, required=True)
    args = parser.parse_args()
    data, config = args.transcript.read_bytes(), json.loads(args.config.read_text())

    (protected, unprotected, payload, signature), at = read(data, 0)
    header, statement = read(protected, 0)[0], read(payload, 0)[0]
    assert unprotected == {} and header[1] in (-8, -19) and header[4] == sha256(args.public_key)[:8]
    verify_signature(args.public_key, write(["Signature1", protected, CONTEXT, payload]), signature)
    print("statement", sha256(payload).hex())
    print("signature agrees")

    sections = {}
    for entry in statement[18]:
        sections[entry[1]], at = read(data, at)
        if sections[entry[1]] is not NULL:
            assert (len(sections[entry[1]]), sha256(sections[entry[1]])) == (entry[2], entry[4]), entry[1]

    mode, count, vocab, dtype, expected = (statement[16][key] for key in range(1, 6))
    places = [(number, position) for number, one in enumerate(statement[15])
              for position in range(one[1] + one[2] - one[4], one[1] + one[2])]
    assert len(places) == count
    rows = sections["logits"]
    if rows is not NULL:
        width = 2 * vocab if mode == "full" else 32
        rows = [rows[at:at + width] for at in range(0, len(rows), width)]
        digests = map(sha256, rows) if mode == "full" else rows
        leaves = [leaf(["logits", number, position, "logits", dtype, [vocab]], digest)
                  for (number, position), digest in zip(places, digests, strict=True)]
        assert root(leaves) == expected, "logits"
    print(f"logits: {count} rows,", "withheld" if rows is NULL else "root agrees")

    if statement[17][1] != "none":
        headers, digests = list(trace_headers(statement, config)), sections["trace"]
        assert len(headers) == statement[17][2]
        if digests is not NULL:
            digests = [digests[at:at + 32] for at in range(0, len(digests), 32)]
            leaves = [leaf(header, digest) for header, digest in zip(headers, digests, strict=True)]
            assert root(leaves) == statement[17][3], "trace"
        print(f"trace ({statement[17][1]}): {len(headers)} leaves,", "withheld" if digests is NULL else "root agrees")
    if at < len(data):
        opening, at = read(data, at)
        print(check_openings(opening, statement, headers, config, sha256(payload)), "opened rows lead to the root")
    assert at == len(data), "bytes after the end"


if __name__ == "__main__":
    main()
