use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime};

use super::*;
use crate::model::Content;

/// A copy of the tiny model whose files were last written long ago, and a place
/// for a cache.
struct Place {
    folder: tempfile::TempDir,
    cache: PathBuf,
}

fn weights(place: &Place) -> PathBuf {
    place.folder.path().join("model/model.safetensors")
}

/// Sets the time of modification back, and waits until the inode's own time of change,
/// which no program can set, lies far enough back too.
fn age(path: &Path, seconds: u64) {
    set_modified(path, seconds);
    std::thread::sleep(Duration::from_millis(2_100));
}

fn set_modified(path: &Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tiny/model");
    for entry in fs::read_dir(tiny).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    let cache = folder.path().join("cache/digests.json");
    let place = Place { folder, cache };
    age(&weights(&place), 1000);
    place
}

/// Digests the model with the cache and saves it; returns how many digests were
/// remembered, and the weight file's.
fn digest(place: &Place) -> (usize, Digest) {
    let (cache, error) = DigestCache::open(&place.cache);
    assert!(error.is_none(), "{error:?}");
    let cache = std::sync::Arc::new(cache);
    let content = Content::open(&place.folder.path().join("model")).unwrap();
    let content = content.with_cache(Some(cache.clone()));
    let told = std::sync::atomic::AtomicU64::new(0);
    let manifest = content.digest_watched(&|bytes| {
        told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
    });
    let (manifest, told) = (manifest.unwrap(), told.into_inner());
    assert_eq!(told, content.len_bytes(), "all bytes are told of, remembered or not");
    cache.save().unwrap();
    (manifest.from_cache(), manifest.file("model.safetensors").unwrap().sha256)
}

#[test]
fn a_file_that_is_as_it_was_is_remembered() {
    let place = place();
    let (remembered, computed) = digest(&place);
    assert_eq!(remembered, 0);
    // The three other files are small, and hashed again.
    assert_eq!(digest(&place), (1, computed));
    let left: Vec<_> = fs::read_dir(place.cache.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no partial file is left");
}

#[test]
fn a_changed_file_of_the_same_length_is_hashed_again() {
    let place = place();
    let (_, before) = digest(&place);
    let file = File::options().write(true).open(weights(&place)).unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(&[0x3c], end - 1).unwrap();
    age(&weights(&place), 500);
    let (remembered, after) = digest(&place);
    assert_eq!(remembered, 0);
    assert_ne!(after, before);
    assert_eq!(digest(&place), (1, after));
}

#[test]
fn setting_the_time_back_does_not_bring_a_digest_back() {
    let place = place();
    let modified = fs::metadata(weights(&place)).unwrap().modified().unwrap();
    let (_, before) = digest(&place);
    let file = File::options().write(true).open(weights(&place)).unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(&[0x3c], end - 1).unwrap();
    file.set_modified(modified).unwrap();
    // The inode's own time of change tells.
    let (remembered, after) = digest(&place);
    assert_eq!(remembered, 0);
    assert_ne!(after, before);
}

#[test]
fn another_inode_at_the_same_path_is_hashed_again() {
    let place = place();
    let modified = fs::metadata(weights(&place)).unwrap().modified().unwrap();
    digest(&place);
    let other = weights(&place).with_extension("new");
    fs::copy(weights(&place), &other).unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, weights(&place)).unwrap();
    assert_eq!(digest(&place).0, 0);
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!(digest(&place).0, 0, "seen too young the first time");
    assert_eq!(digest(&place).0, 1);
}

#[test]
fn a_file_written_a_moment_ago_is_not_remembered() {
    // The second: a copy that brought its old time of modification along.
    for seconds in [0, 86_400] {
        let place = place();
        set_modified(&weights(&place), seconds);
        assert_eq!(digest(&place).0, 0);
        assert_eq!(digest(&place).0, 0, "a later write could have the same time");
    }
}

#[test]
fn a_damaged_cache_is_named_and_empty() {
    let place = place();
    let (_, digest_before) = digest(&place);
    let good = fs::read_to_string(&place.cache).unwrap();
    let hex = digest_before.to_string();
    let flipped = format!("{}{}", if hex.starts_with('0') { '1' } else { '0' }, &hex[1..]);
    let damaged = [
        ("a changed digest", good.replace(&hex, &flipped)),
        ("a changed path", good.replace("model.safetensors", "model.safetensort")),
        ("another format", good.replace(FORMAT, "attest digest cache 2")),
        ("half a file", good[..good.len() / 2].to_owned()),
        ("an unknown field", good.replacen('{', "{\"more\":1,", 1)),
        ("nothing", String::new()),
    ];
    for (name, text) in damaged {
        assert_ne!(text, good, "{name}");
        fs::write(&place.cache, text).unwrap();
        let (cache, error) = DigestCache::open(&place.cache);
        let error = error.unwrap_or_else(|| panic!("{name} is accepted"));
        assert!(error.to_string().contains("digests.json"), "{name}: {error}");
        assert!(cache.known.into_inner().unwrap().is_empty(), "{name}");
    }
}
