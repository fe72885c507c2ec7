"""Checks tests/golden/transcript-v1.cbor from spec/transcript.md alone.

With the second implementation of `examples/reader`, which shares no code with the crate, so
agreement says that the page is enough to read a transcript. Run: python3 tests/golden/independent_reader.py
"""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples" / "reader"))
from reader import leaf, read, root, sha256, write

FILE = pathlib.Path(__file__).with_name("transcript-v1.cbor")
SEED = bytes([7] * 32)
# Names and shapes of the traced steps come from the plan; here, from the test.
STEPS = [(0, 1, "layer.0", [3, 4]), (0, 2, "layer.1", [3, 4]),
         (1, 1, "layer.0", [1, 4]), (1, 2, "layer.1", [1, 4])]


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
