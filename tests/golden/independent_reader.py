"""Checks tests/golden/transcript-v1.cbor from spec/transcript.md alone.

A second implementation in the standard library; OpenSSL checks the signature.
It shares no code with the crate, so agreement says that the page is enough to
read a transcript. Run: python3 tests/golden/independent_reader.py
"""

import hashlib
import pathlib
import subprocess
import tempfile

FILE = pathlib.Path(__file__).with_name("transcript-v1.cbor")
SEED = bytes([7] * 32)
# Names and shapes of the traced steps come from the plan; here, from the test.
STEPS = [(0, 1, "layer.0", [3, 4]), (0, 2, "layer.1", [3, 4]),
         (1, 1, "layer.0", [1, 4]), (1, 2, "layer.1", [1, 4])]


def sha256(data):
    return hashlib.sha256(data).digest()


def read(data, at):
    """One CBOR item: (value, where it ends)."""
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
        assert argument == 18
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


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1" + root(leaves[:split]) + root(leaves[split:]))


def leaf(header, content_digest):
    return sha256(b"\0" + write(header) + content_digest)


def openssl_public_key_that_verifies(message, signature):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "key").write_bytes(bytes.fromhex("302e020100300506032b657004220420") + SEED)
        (path / "message").write_bytes(message)
        (path / "signature").write_bytes(signature)
        for command in (
            "openssl pkey -inform DER -in key -pubout -outform DER -out public",
            "openssl pkeyutl -verify -pubin -keyform DER -inkey public -rawin"
            " -in message -sigfile signature",
        ):
            subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
        return (path / "public").read_bytes()[-32:]


def main():
    data = FILE.read_bytes()
    (protected, unprotected, payload, signature), at = read(data, 0)
    header, statement = read(protected, 0)[0], read(payload, 0)[0]
    signed = write(["Signature1", protected, b"attest transcript v1", payload])
    public = openssl_public_key_that_verifies(signed, signature)
    assert unprotected == {} and header[1] == -8
    assert header[4] == sha256(public)[:8]

    sections = []
    while at < len(data):
        section, at = read(data, at)
        sections.append(section)
    for section, entry in zip(sections, statement[18], strict=True):
        assert (len(section), sha256(section)) == (entry[2], entry[4])

    places = [(number, position) for number, one in enumerate(statement[15])
              for position in range(one[1] + one[2] - one[4], one[1] + one[2])]
    _, count, vocab, dtype, expected = (statement[16][key] for key in range(1, 6))
    rows = [sections[0][row * 2 * vocab:(row + 1) * 2 * vocab] for row in range(count)]
    leaves = [leaf(["logits", number, position, "logits", dtype, [vocab]], sha256(row))
              for (number, position), row in zip(places, rows, strict=True)]
    assert root(leaves) == expected

    digests = [sections[1][start:start + 32] for start in range(0, len(sections[1]), 32)]
    leaves = [leaf(["trace", number, step, name, dtype, shape], digest)
              for (number, step, name, shape), digest in zip(STEPS, digests, strict=True)]
    assert root(leaves) == statement[17][3]
    print("statement", sha256(payload).hex(), "signature, sections and roots agree")


if __name__ == "__main__":
    main()
