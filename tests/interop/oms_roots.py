#!/usr/bin/env python3
"""Compares `attest model digest` with the reference library of OpenSSF Model Signing.

Run by hand, after a release build; needs a package registry:

    python3 tests/interop/oms_roots.py target/release/attest [PYTHON]

Makes a virtual environment in a temporary folder and installs model-signing there, unless
PYTHON is an interpreter that has it. Then prints both roots of each folder below, with what is expected. Exit code 1 if a folder
does not behave as expected. What came out is in spec/interop.md.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

# The second is imported by the first, which does not ask for it.
PACKAGES = ["model-signing==1.1.1", "pyopenssl"]
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "tiny" / "model"

# The root of a folder by the library: digests in the order of its own manifest.
REFERENCE = """
import hashlib, sys
from model_signing import hashing
config = hashing.Config().set_ignored_paths(paths=["model.sig"])
config.set_allow_symlinks(sys.argv[2] == "links")
try:
    manifest = config.hash(sys.argv[1])
except ValueError as error:
    print("refused: " + str(error).replace(sys.argv[1], "FOLDER"))
    raise SystemExit
digest = hashlib.sha256()
for descriptor in manifest.resource_descriptors():
    digest.update(descriptor.digest.digest_value)
print(digest.hexdigest())
"""

SAME, OTHER_ORDER, OURS_ALONE, THEIRS_ALONE = (
    "the same root", "another order, another root", "ours alone has a root",
    "theirs alone has a root")


def files(folder, contents):
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())


def ignored(folder):
    files(folder, {
        "config.json": "{}", ".gitignore": "x", ".gitattributes": "x", ".git/HEAD": "x",
        ".github/workflows/x.yml": "x", "model.sig": "x",
        "a/.gitignore": "kept", "a/.git/HEAD": "kept", "a/model.sig": "kept", ".hidden": "kept"})


def empty(folder):
    files(folder, {"empty.bin": "", "a/b/c": "deep"})
    (folder / "no-files").mkdir()


def order_of_text(folder):
    files(folder, {name: name for name in
                   ["b", "a", "B", "a.b", "é", "e\u0301", "\uffee", "\U00010400", "10", "9"]})


def order_of_components(folder):
    files(folder, {"a/b": "1", "a-b": "2"})


def link_to_file(folder):
    files(folder, {"real.bin": "x"})
    os.symlink("real.bin", folder / "link.bin")


def link_in_git(folder):
    files(folder, {"config.json": "{}", ".git/HEAD": "x"})
    os.symlink("HEAD", folder / ".git" / "link")


def link_to_folder(folder):
    files(folder, {"a/b": "x"})
    os.symlink("a", folder / "c")


def link_outside(folder):
    files(folder, {"config.json": "{}"})
    os.symlink("/etc/hostname", folder / "outside.bin")


def dangling(folder):
    files(folder, {"config.json": "{}"})
    os.symlink("absent", folder / "link.bin")


def cache_snapshot(folder):
    """A Hugging Face cache: every file a link to a blob beside the snapshot."""
    files(folder, {"models--o--n/blobs/1": "x", "models--o--n/blobs/2": "y"})
    snapshot = folder / "models--o--n" / "snapshots" / "r"
    snapshot.mkdir(parents=True)
    os.symlink("../../blobs/1", snapshot / "config.json")
    os.symlink("../../blobs/2", snapshot / "model.safetensors")
    return snapshot


# Folder, whether the library follows links, what is expected.
CASES = [
    (ignored, False, SAME), (empty, False, SAME), (order_of_text, False, SAME),
    (order_of_components, False, OTHER_ORDER),
    (link_to_file, False, OURS_ALONE), (link_to_file, True, SAME),
    (link_in_git, False, OURS_ALONE), (link_in_git, True, SAME),
    (link_to_folder, True, THEIRS_ALONE), (link_outside, True, THEIRS_ALONE),
    (dangling, True, "neither has a root"),
    (cache_snapshot, False, OURS_ALONE), (cache_snapshot, True, SAME),
]


def ours(attest, folder):
    run = subprocess.run([attest, "model", "digest", "--json", str(folder)],
                         capture_output=True, text=True)
    found = json.loads(run.stdout)
    return found.get("oms_root") or f"refused ({run.returncode}): {found['error']}"


def theirs(python, folder, links):
    command = [python, "-c", REFERENCE, str(folder), "links" if links else "no"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def environment(folder):
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def outcome(a, b):
    roots = [not root.startswith("refused") for root in (a, b)]
    if roots == [True, True]:
        return SAME if a == b else OTHER_ORDER
    return {(True, False): OURS_ALONE, (False, True): THEIRS_ALONE}.get(
        tuple(roots), "neither has a root")


def main():
    attest = str(pathlib.Path(sys.argv[1]).resolve())
    wrong = 0
    with tempfile.TemporaryDirectory() as base:
        base = pathlib.Path(base)
        python = sys.argv[2] if len(sys.argv) > 2 else environment(base / "venv")
        cases = [("examples/tiny/model", EXAMPLE, False, SAME)]
        for index, (make, links, expected) in enumerate(CASES):
            folder = base / str(index)
            folder.mkdir()
            name = make.__name__ + (" (links allowed)" if links else "")
            cases.append((name, make(folder) or folder, links, expected))
        for name, folder, links, expected in cases:
            a, b = ours(attest, folder), theirs(python, folder, links)
            found = outcome(a, b)
            mark = "as expected" if found == expected else f"EXPECTED {expected}"
            wrong += found != expected
            print(f"{name}: {found}, {mark}\n  ours   {a}\n  theirs {b}")
    print(f"{len(cases) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
