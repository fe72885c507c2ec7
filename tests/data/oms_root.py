#!/usr/bin/env python3
"""Prints the OMS root of a small folder, by the reference library.

    pip install model-signing==1.1.1 pyopenssl
    python3 oms_root.py
"""
import hashlib
import pathlib
import tempfile

from model_signing import hashing

FILES = {
    "config.json": "{}\n",
    "a/b.txt": "nested",
    "Zeta": "upper case first",
    "\u00e9.bin": "",
    ".gitignore": "x",
    ".git/HEAD": "ref",
    "a/.gitignore": "kept below the top",
    "model.sig": "ignored by name",
}

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    manifest = hashing.Config().set_ignored_paths(paths=[root / "model.sig"]).hash(root)
    digest = hashlib.sha256()
    # The signed root: digests of the descriptors in the library's order.
    for descriptor in manifest.resource_descriptors():
        digest.update(descriptor.digest.digest_value)
    print(digest.hexdigest())
