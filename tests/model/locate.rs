use std::fs;
use std::path::{Path, PathBuf};

use attest::model::Kind;
use attest::model::locate::Places;
use tempfile::TempDir;

use crate::folder::text;

/// Two folders of models and a cache, all empty.
struct Site {
    root: TempDir,
    places: Places,
}

impl Site {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let at = |name| root.path().join(name);
        let places = Places { folders: vec![at("first"), at("second")], cache: Some(at("hub")) };
        Self { root, places }
    }

    fn folder(&self, path: &str) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn cached(&self, entry: &str, revision: &str) -> PathBuf {
        fs::write(self.folder(&format!("hub/{entry}/refs")).join("main"), revision).unwrap();
        self.folder(&format!("hub/{entry}/snapshots/{revision}"))
    }

    fn message(&self, name: &str) -> String {
        let error = self.places.resolve(name).unwrap_err();
        assert_eq!(error.kind(), Kind::Incomplete);
        error.to_string().replace(text(self.root.path()), "ROOT")
    }
}

#[test]
fn a_folder_is_taken_as_it_is() {
    let site = Site::new();
    let folder = site.folder("anywhere/model");
    assert_eq!(site.places.resolve(text(&folder)).unwrap(), folder);
}

#[test]
fn finds_a_name_without_case_in_the_first_folder_that_has_it() {
    let site = Site::new();
    let second = site.folder("second/Qwen3-4B");
    assert_eq!(site.places.resolve("qwen3-4b").unwrap(), second);
    let first = site.folder("first/QWEN3-4B");
    assert_eq!(site.places.resolve("qwen3-4b").unwrap(), first);
    let nested = site.folder("first/Qwen/Qwen3-8B");
    assert_eq!(site.places.resolve("Qwen/qwen3-8b").unwrap(), nested);
}

#[test]
fn an_exact_spelling_beats_others_and_others_are_ambiguous() {
    let site = Site::new();
    site.folder("first/TINY");
    site.folder("first/Tiny");
    assert_eq!(
        site.message("tiny"),
        "model name tiny is ambiguous: ROOT/first/TINY, ROOT/first/Tiny"
    );
    let exact = site.folder("first/tiny");
    assert_eq!(site.places.resolve("tiny").unwrap(), exact);
}

#[test]
fn finds_a_name_in_the_cache_at_its_main_revision() {
    let site = Site::new();
    let snapshot = site.cached("models--Qwen--Qwen3-4B", "0123abcd");
    site.folder("hub/models--Qwen--Qwen3-4B/snapshots/older");
    site.folder("hub/datasets--Qwen--qwen3-4b/snapshots/x");
    for name in ["qwen3-4b", "Qwen3-4B", "qwen/qwen3-4b", "Qwen/Qwen3-4B"] {
        assert_eq!(site.places.resolve(name).unwrap(), snapshot, "{name}");
    }
    // A line end after the revision is no part of it.
    fs::write(site.folder("hub/models--Qwen--Qwen3-4B/refs").join("main"), "0123abcd\n").unwrap();
    assert_eq!(site.places.resolve("qwen3-4b").unwrap(), snapshot);
    // Another publisher's model of the same name makes the short name ambiguous.
    let other = site.cached("models--Else--qwen3-4b", "ff");
    assert_eq!(
        site.message("qwen3-4b"),
        "model name qwen3-4b is ambiguous: ROOT/hub/models--Else--qwen3-4b/snapshots/ff, \
         ROOT/hub/models--Qwen--Qwen3-4B/snapshots/0123abcd"
    );
    assert_eq!(site.places.resolve("else/qwen3-4b").unwrap(), other);
}

#[test]
fn says_where_it_looked() {
    let site = Site::new();
    assert_eq!(
        site.message("absent"),
        "there is no model named absent; looked in folder absent, ROOT/first/absent, \
         ROOT/second/absent, Hugging Face cache ROOT/hub"
    );
    let nowhere = Places::default().resolve("absent").unwrap_err();
    assert_eq!(nowhere.to_string(), "there is no model named absent; looked in folder absent");
}

#[test]
fn a_path_that_is_wrong_is_not_searched_for() {
    let site = Site::new();
    site.folder("first/tiny");
    for name in ["", ".", "/absent/tiny", "./tiny-absent", "../tiny", "a/b/tiny", "first/../tiny"] {
        let found = Path::new(name).is_dir();
        let result = site.places.resolve(name);
        assert_eq!(result.is_ok(), found && !name.is_empty(), "{name}: {result:?}");
    }
}

#[test]
fn a_revision_that_is_a_path_is_not_followed() {
    let site = Site::new();
    for revision in ["../../../first", "/", "", ".", ".."] {
        let refs = site.folder("hub/models--Qwen--Tiny/refs");
        site.folder("hub/models--Qwen--Tiny/snapshots");
        fs::write(refs.join("main"), revision).unwrap();
        assert_eq!(
            site.message("tiny"),
            "there is no model named tiny; looked in folder tiny, ROOT/first/tiny, ROOT/second/tiny, \
             Hugging Face cache ROOT/hub, ROOT/hub/models--Qwen--Tiny (no snapshot of main)",
            "{revision:?}"
        );
    }
}
