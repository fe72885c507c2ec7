use std::fs;
use std::path::Path;

use attest::model::{Kind, Model, ModelError};
use attest::num::sha256;
use attest::transcript::capture;

use crate::folder::{TestFolder, text};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

/// Turns a folder `models--ORG--NAME/snapshots/REV` into links to blobs, as
/// `huggingface_hub` stores it.
#[cfg(unix)]
fn cached() -> TestFolder {
    let folder = TestFolder::valid_below("models--Qwen--Tiny/snapshots/abc123");
    let blobs = folder.temporary().join("models--Qwen--Tiny/blobs");
    fs::create_dir(&blobs).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let content = fs::read(&path).unwrap();
        let blob = sha256(&[&content]).to_string();
        fs::rename(&path, blobs.join(&blob)).unwrap();
        std::os::unix::fs::symlink(format!("../../blobs/{blob}"), &path).unwrap();
    }
    folder
}

#[test]
fn names_a_git_lfs_pointer() {
    for name in ["model.safetensors", "tokenizer.json", "config.json", "generation_config.json"] {
        let folder = TestFolder::valid();
        folder.write(name, POINTER);
        folder.assert_refused(
            Kind::Incomplete,
            &format!("{name} is a Git LFS pointer, fetch the real file (git lfs pull)"),
        );
    }
    let folder = TestFolder::sharded();
    folder.write("model-00002-of-00002.safetensors", POINTER);
    folder.assert_refused(
        Kind::Incomplete,
        "model-00002-of-00002.safetensors is a Git LFS pointer, fetch the real file (git lfs pull)",
    );
}

#[test]
fn names_a_missing_file() {
    for name in ["config.json", "tokenizer.json"] {
        let folder = TestFolder::valid();
        folder.remove(name);
        folder.assert_refused(Kind::Incomplete, &format!("{name} is missing from FOLDER"));
    }
}

#[test]
fn refuses_what_is_not_a_folder_or_file() {
    let folder = TestFolder::valid();
    let error = Model::open(&folder.path().join("config.json")).unwrap_err();
    assert!(error.to_string().ends_with("config.json cannot be read: not a folder"), "{error}");
    let error = Model::open(&folder.path().join("absent")).unwrap_err();
    assert!(matches!(error, ModelError::Folder { .. }), "{error}");

    folder.remove("tokenizer.json");
    fs::create_dir(folder.path().join("tokenizer.json")).unwrap();
    folder.assert_refused(Kind::Malformed, "tokenizer.json is not a regular file");
}

#[test]
fn refuses_an_adapter_that_transformers_would_apply() {
    let folder = TestFolder::valid();
    folder.write("adapter_config.json", "{}");
    folder.assert_refused(Kind::Incomplete, "adapter_config.json is present and not supported");
}

#[cfg(unix)]
#[test]
fn follows_links_inside_a_cache_and_records_them() {
    let (plain, cached) = (TestFolder::valid().open(), cached().open());
    assert_eq!(cached.name(), "Qwen/Tiny");
    assert_eq!(plain.name(), "Tiny");
    assert_eq!(capture::manifest(&cached).digest, capture::manifest(&plain).digest);
    for file in cached.manifest().files() {
        assert_eq!(file.link, Some(format!("../../blobs/{}", file.sha256)));
    }
    assert!(plain.manifest().files().iter().all(|file| file.link.is_none()));
}

#[cfg(unix)]
#[test]
fn names_a_dangling_link() {
    let folder = cached();
    let link = fs::read_link(folder.path().join("model.safetensors")).unwrap();
    fs::remove_file(folder.path().join(&link)).unwrap();
    folder.assert_refused(
        Kind::Incomplete,
        &format!("dangling link model.safetensors -> {}", text(&link)),
    );
}

#[cfg(unix)]
#[test]
fn refuses_a_blob_that_is_not_what_its_name_says() {
    let folder = cached();
    let path = folder.path().join("generation_config.json");
    let blob = fs::read_link(&path).unwrap();
    let name = blob.file_name().unwrap().to_str().unwrap();
    fs::write(&path, "{}").unwrap();
    folder.assert_refused(
        Kind::Incomplete,
        &format!(
            "generation_config.json links to blob {name}, whose content has SHA-256 {}",
            sha256(&[b"{}"])
        ),
    );
}

#[cfg(unix)]
#[test]
fn refuses_links_that_leave_their_root() {
    let link = |folder: &TestFolder, target: &Path| {
        folder.remove("model.safetensors");
        std::os::unix::fs::symlink(target, folder.path().join("model.safetensors")).unwrap();
    };
    // A plain folder is its own root, even for a link to an honest file.
    let folder = TestFolder::valid();
    let outside = folder.temporary().join("other.safetensors");
    fs::copy(folder.path().join("model.safetensors"), &outside).unwrap();
    link(&folder, Path::new("../other.safetensors"));
    folder.assert_refused(
        Kind::Malformed,
        "link model.safetensors -> ../other.safetensors leaves FOLDER",
    );
    // A cache entry is the root of its snapshots, not the whole cache.
    let folder = cached();
    let outside = folder.temporary().join("other.safetensors");
    fs::copy(folder.path().join("model.safetensors"), &outside).unwrap();
    link(&folder, Path::new("../../../other.safetensors"));
    let root = folder.temporary().join("models--Qwen--Tiny");
    folder.assert_refused(
        Kind::Malformed,
        &format!("link model.safetensors -> ../../../other.safetensors leaves {}", text(&root)),
    );
    // A link inside the folder is fine.
    let folder = TestFolder::valid();
    fs::rename(folder.path().join("model.safetensors"), folder.path().join("weights.bin")).unwrap();
    std::os::unix::fs::symlink("weights.bin", folder.path().join("model.safetensors")).unwrap();
    folder.open();
}

#[test]
fn notices_a_file_written_to_after_it_was_opened() {
    let folder = TestFolder::valid();
    let model = folder.open();
    model.weights().check_unchanged().unwrap();
    let path = folder.path().join("model.safetensors");
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    file.set_modified(long_ago).unwrap();
    let error = model.weights().check_unchanged().unwrap_err();
    assert_eq!(
        error.to_string(),
        "model.safetensors changed while it was in use, or its metadata did"
    );
}
