use std::fs;

use attest::model::Kind;
use attest::model::manifest::{Manifest, ManifestFile, oms_root};
use attest::num::{Digest, sha256};
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

fn entry(path: &str, length: u64, content: u8) -> ManifestFile {
    ManifestFile { path: path.into(), length, sha256: Digest([content; 32]), link: None }
}

#[test]
fn digest_is_the_documented_one() {
    let manifest = Manifest::from_files(vec![entry("b", 258, 0xbb), entry("a", 1, 0xaa)]);
    let mut bytes = b"attest model manifest v1\n".to_vec();
    bytes.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, b'a', 1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0xaa; 32]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, b'b', 2, 1, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0xbb; 32]);
    assert_eq!(manifest.digest(), sha256(&[&bytes]));
}

#[test]
fn digest_covers_path_length_and_content_but_not_links() {
    let manifest = |file: ManifestFile| Manifest::from_files(vec![file]).digest();
    let base = manifest(entry("a", 1, 2));
    assert_ne!(manifest(entry("b", 1, 2)), base, "path");
    assert_ne!(manifest(entry("a", 2, 2)), base, "length");
    assert_ne!(manifest(entry("a", 1, 3)), base, "content");
    let linked = ManifestFile { link: Some("../blob".into()), ..entry("a", 1, 2) };
    assert_eq!(manifest(linked), base, "link");
}

#[test]
fn differences_name_every_file() {
    let expected = Manifest::from_files(vec![entry("a", 1, 1), entry("b", 1, 1), entry("c", 1, 1)]);
    let found = Manifest::from_files(vec![entry("b", 2, 1), entry("c", 1, 2), entry("d", 1, 1)]);
    assert_eq!(
        expected.differences(&found),
        [
            "a is missing".to_owned(),
            "b has 2 bytes, expected 1".to_owned(),
            format!("c has SHA-256 {}, expected {}", "02".repeat(32), "01".repeat(32)),
            "d is not in the manifest".to_owned(),
        ]
    );
    assert!(expected.differences(&expected.clone()).is_empty());
}

#[test]
fn a_changed_file_changes_the_digest() {
    let folder = TestFolder::valid();
    let before = folder.open().manifest().digest();
    let mut file = folder.read("model.safetensors");
    *file.last_mut().unwrap() ^= 1;
    folder.write("model.safetensors", &file);
    assert_ne!(folder.open().manifest().digest(), before);
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
