use std::fs;
use std::path::Path;

use attest::model::Kind;
use attest::model::Manifest;
use attest::model::manifest::{OMS_SIGNATURE, oms_root};
use attest::num::sha256;
use attest::transcript::capture;
use tempfile::TempDir;

use crate::folder::TestFolder;

#[test]
fn lists_exactly_the_files_that_define_the_run() {
    let folder = TestFolder::sharded();
    folder.write("README.md", "not read, so not listed");
    let model = folder.open();
    let paths: Vec<_> = model.manifest().files().iter().map(|f| f.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "config.json",
            "generation_config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json",
        ]
    );
    for file in model.manifest().files() {
        let content = folder.read(&file.path);
        assert_eq!((file.length, file.sha256), (content.len() as u64, sha256(&[&content])));
    }
}

#[test]
fn a_changed_file_changes_the_digest() {
    let folder = TestFolder::valid();
    let before = capture::manifest(&folder.open());
    let mut file = folder.read("model.safetensors");
    *file.last_mut().unwrap() ^= 1;
    folder.write("model.safetensors", &file);
    let after = capture::manifest(&folder.open());
    assert_ne!(after.digest, before.digest);
    let [difference] = &before.differences(&after)[..] else { panic!("one file differs") };
    assert!(difference.starts_with("model.safetensors has SHA-256 "), "{difference}");
}

fn oms_folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// Files of the reference folder; the same list is in `tests/data/oms_root.py`.
const OMS_FILES: [(&str, &str); 8] = [
    ("config.json", "{}\n"),
    ("a/b.txt", "nested"),
    ("Zeta", "upper case first"),
    ("\u{e9}.bin", ""),
    (".gitignore", "x"),
    (".git/HEAD", "ref"),
    ("a/.gitignore", "kept below the top"),
    ("model.sig", "ignored by name"),
];

#[test]
fn oms_root_is_that_of_the_reference_library() {
    let folder = oms_folder(&OMS_FILES);
    let root = oms_root(folder.path(), &[OMS_SIGNATURE], &Manifest::default()).unwrap();
    assert_eq!(root.to_string(), OMS_REFERENCE);
}

#[test]
fn oms_root_sorts_whole_paths_by_code_point() {
    // The specification sorts names as text, so `a-b` is before `a/b`. The
    // reference library 1.1.1 sorts component by component, the other way round.
    let folder = oms_folder(&[("a/b", "1"), ("a-b", "2")]);
    let root = oms_root(folder.path(), &[], &Manifest::default()).unwrap();
    assert_eq!(root, sha256(&[&sha256(&[b"2"]).0, &sha256(&[b"1"]).0]));
}

#[test]
fn oms_root_hashes_a_pointer_file_as_it_is() {
    let pointer = "version https://git-lfs.github.com/spec/v1\n";
    let folder = oms_folder(&[("a", pointer)]);
    let root = oms_root(folder.path(), &[], &Manifest::default()).unwrap();
    assert_eq!(root, sha256(&[&sha256(&[pointer.as_bytes()]).0]));
}

#[test]
fn the_root_of_a_model_covers_every_file_but_a_signature() {
    let folder = TestFolder::sharded();
    folder.write("README.md", "not used, but part of the root");
    let root = folder.open().oms_root();
    let independent = oms_root(&folder.path(), &[], &Manifest::default()).unwrap();
    assert_eq!(root, Some(independent));
    folder.write("model.sig", "a signature made afterwards");
    assert_eq!(folder.open().oms_root(), root);
    folder.write("README.md", "changed");
    assert_ne!(folder.open().oms_root(), root);
}

#[test]
fn the_root_takes_the_digests_of_the_manifest() {
    // A defining file that is replaced after it was hashed would show if it were
    // hashed a second time.
    let folder = TestFolder::valid();
    let model = folder.open();
    let root = model.oms_root();
    folder.write("config.json", "{}");
    assert_eq!(model.oms_root(), root);
    folder.write("unused.txt", "read when the root is asked for");
    assert_ne!(model.oms_root(), root);
}

#[cfg(unix)]
#[test]
fn an_unused_entry_that_cannot_be_read_leaves_the_root_absent() {
    for target in ["absent.bin", "/etc/hostname", "."] {
        let folder = TestFolder::valid();
        std::os::unix::fs::symlink(target, folder.path().join("unused.bin")).unwrap();
        let model = folder.open();
        assert_eq!(model.oms_root(), None, "link to {target}");
        assert_eq!(capture::manifest(&model).files.len(), 4);
    }
}

#[test]
fn kinds_of_folder_errors_are_incomplete() {
    let error = oms_root(Path::new("absent-folder"), &[], &Manifest::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Incomplete);
}

/// Printed by `tests/data/oms_root.py` with model-signing 1.1.1.
const OMS_REFERENCE: &str = "cd1a6f98458002f3ca9298d179980e450899eeb5ea28b5d2e128fd0b4d2cda2a";
