//! The second reader, `examples/reader/reader.py`, on transcripts that this program wrote:
//! they agree on signature, sections, roots, draws and openings.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use attest::transcript::cells::Layout;
use attest::transcript::opening::Draw;
use attest::transcript::statement::{LogitsMode, TraceMode};
use attest::transcript::write::{opened, statement_alone};
use attest::transcript::{LOGITS_SECTION, Transcript};

use support::{Making, tiny};

/// Whether Python and OpenSSL are recent enough; says so if not.
fn available() -> bool {
    let version = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let number = text.split_whitespace().nth(1)?;
        let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((parts.next()?, parts.next()?))
    };
    let found = (version("python3", "--version"), version("openssl", "version"));
    let recent = found.0 >= Some((3, 10)) && found.1 >= Some((3, 0));
    if !recent {
        println!("skipped: python3 3.10 and openssl 3.0 are needed, found {found:?}");
    }
    recent
}

/// What the reader prints, or that it fails.
fn read(file: &Path, public_key: &str) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reader/reader.py");
    let output = Command::new("python3")
        .args([script.as_path(), file, Path::new("--config")])
        .arg(tiny().join("model/config.json"))
        .args(["--public-key", public_key])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    fs::write(folder.join(name), bytes).unwrap();
    folder.join(name)
}

#[test]
fn the_committed_transcripts_are_read_alike() {
    if !available() {
        return;
    }
    let store = fs::read_to_string(tiny().join("trust.toml")).unwrap();
    let key = store.lines().find_map(|line| line.strip_prefix("public_key = ")).unwrap();
    for name in ["transcript.cbor", "transcript-emulator.cbor"] {
        let path = tiny().join(name);
        let statement = Transcript::parse(fs::read(&path).unwrap()).unwrap().digest();
        let expected = format!(
            "statement {statement}\nsignature agrees\nlogits: 96 rows, root agrees\n\
             trace (steps): 3744 leaves, root agrees\n"
        );
        assert_eq!(read(&path, key.trim_matches('"')), Ok(expected));
    }
}

#[test]
fn every_form_of_a_file_is_read_alike() {
    if !available() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = support::key().public().to_hex();
    for logits in [LogitsMode::Full, LogitsMode::Hash] {
        for trace in [TraceMode::None, TraceMode::Layers, TraceMode::Steps, TraceMode::Cells] {
            let made = Making { logits, trace, ..Making::default() }.make();
            let sealed = made.seal();
            let path = write(folder.path(), "t.cbor", sealed.as_bytes());
            let seen = read(&path, &key).unwrap();
            assert!(seen.contains("logits: 3 rows, root agrees"), "{seen}");
            let alone = statement_alone(sealed.item_0(), made.statement.sections.len());
            let seen = read(&write(folder.path(), "a.cbor", &alone), &key).unwrap();
            assert!(seen.contains("logits: 3 rows, withheld"), "{seen}");
        }
    }
}

#[test]
fn draws_and_openings_are_read_alike() {
    if !available() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = support::key().public().to_hex();
    let made = Making { trace: TraceMode::Cells, ..Making::default() }.make();
    let seen = read(&write(folder.path(), "kept.cbor", &made.whole), &key).unwrap();
    assert!(seen.ends_with("30 opened rows lead to the root\n"), "{seen}");
    let kept = Transcript::parse(made.whole.clone()).unwrap();
    assert!(!kept.withholds(LOGITS_SECTION));
    let layout = Layout::new(&made.layout().0);
    for cells in [1, 2, 5, 9, 10, 11] {
        let draw = Draw { cells, nonce: vec![cells as u8; 32] };
        let mut file = Vec::new();
        opened(&kept, &layout, &draw, &mut file).unwrap();
        let seen = read(&write(folder.path(), "opened.cbor", &file), &key).unwrap();
        assert!(seen.ends_with("opened rows lead to the root\n"), "{cells}: {seen}");
        // One bit of a row.
        let contents = Transcript::parse(file.clone()).unwrap().opening().unwrap().contents.clone();
        file[contents.start as usize] ^= 1;
        let refused = read(&write(folder.path(), "changed.cbor", &file), &key).unwrap_err();
        assert!(refused.contains("the openings do not lead to the root"), "{refused}");
    }
    let other = read(&folder.path().join("kept.cbor"), &"ab".repeat(32)).unwrap_err();
    assert!(other.contains("AssertionError"), "another key: {other}");
}
