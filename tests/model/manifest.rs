use std::fs;

use attest::model::Kind;
use attest::model::manifest::oms_root;
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
    let root = oms_root(folder.path(), &["model.sig"]).unwrap();
    assert_eq!(root.to_string(), OMS_REFERENCE);
}

#[test]
fn oms_root_sorts_whole_paths_by_code_point() {
    // The specification sorts names as text, so `a-b` is before `a/b`. The
    // reference library 1.1.1 sorts component by component, the other way round.
    let folder = oms_folder(&[("a/b", "1"), ("a-b", "2")]);
    let root = oms_root(folder.path(), &[]).unwrap();
    assert_eq!(root, sha256(&[&sha256(&[b"2"]).0, &sha256(&[b"1"]).0]));
}

#[test]
fn oms_root_hashes_a_pointer_file_as_it_is() {
    let pointer = "version https://git-lfs.github.com/spec/v1\n";
    let folder = oms_folder(&[("a", pointer)]);
    let root = oms_root(folder.path(), &[]).unwrap();
    assert_eq!(root, sha256(&[&sha256(&[pointer.as_bytes()]).0]));
}

#[test]
fn kinds_of_folder_errors_are_incomplete() {
    let error = oms_root(std::path::Path::new("absent-folder"), &[]).unwrap_err();
    assert_eq!(error.kind(), Kind::Incomplete);
}

/// Printed by `tests/data/oms_root.py` with model-signing 1.1.1.
const OMS_REFERENCE: &str = "cd1a6f98458002f3ca9298d179980e450899eeb5ea28b5d2e128fd0b4d2cda2a";
