"""Checks an export of `attest export` from spec/interop.md alone.

A second implementation in the standard library; OpenSSL checks the signature. It shares
no code with the crate, so agreement says that the page is enough to read an export.
Run: python3 tests/interop/check_export.py ENVELOPE PUBLIC_KEY_PEM TRANSCRIPT
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

TYPE = "application/vnd.in-toto+json"


def pae(payload_type, payload):
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type, len(payload), payload)


def openssl_verifies(key, message, signature):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "message").write_bytes(message)
        (path / "signature").write_bytes(signature)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin",
                   "-in", str(path / "message"), "-sigfile", str(path / "signature")]
        return subprocess.run(command, capture_output=True).returncode == 0


def byte_string(data, at):
    """A CBOR byte string: (contents, where it ends)."""
    assert data[at] >> 5 == 2
    length, at = data[at] & 31, at + 1
    if length >= 24:
        width = 1 << (length - 24)
        length, at = int.from_bytes(data[at:at + width], "big"), at + width
    return data[at:at + length], at + length


def statement_of(transcript):
    """The payload of item 0: tag 18, array of four, protected header, empty map, payload."""
    assert transcript[:2] == b"\xd2\x84"
    _, at = byte_string(transcript, 2)
    assert transcript[at] == 0xa0
    return byte_string(transcript, at + 1)[0]


def main():
    envelope, key, transcript = sys.argv[1:]
    envelope = json.loads(pathlib.Path(envelope).read_text())
    assert envelope["payloadType"] == TYPE
    payload = base64.b64decode(envelope["payload"], validate=True)
    [signature] = envelope["signatures"]
    message, raw = pae(TYPE.encode(), payload), base64.b64decode(signature["sig"], validate=True)
    assert openssl_verifies(key, message, raw)
    assert not openssl_verifies(key, message[:-1] + b" ", raw), "OpenSSL checks nothing"
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", key, "-outform", "DER"],
                         capture_output=True, check=True).stdout
    assert signature["keyid"] == hashlib.sha256(der[-32:]).digest()[:8].hex()

    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:attest:transcript-export:v1"
    assert statement["predicate"]["transcriptChecked"] is False
    subject = statement["subject"][0]
    digest = hashlib.sha256(statement_of(pathlib.Path(transcript).read_bytes())).hexdigest()
    assert subject == {"name": "transcript", "digest": {"sha256": digest}}
    print("export of", digest, "signature and subject agree")


if __name__ == "__main__":
    main()
