//! Other models than the one that the transcript states.

use std::fs;
use std::path::Path;

use attest::isa::mma::Simd;
use attest::model::Content;
use attest::verify::report::{Outcome, Subject, Verdict};
use attest::verify::{Anchor, Request, Verified, verify};

use crate::support::{self, Making, assert_verified, failures, tiny};

/// `begun` says whether an execution may begin.
fn verify_in(folder: &Path, begun: bool) -> Verified {
    let transcript = Making::default().make().seal();
    verify(Request {
        file: transcript.as_bytes().to_vec().into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| Content::open(folder),
        progress: &mut |_| assert!(begun, "another model is executed"),
        diagnosing: None,
    })
}

fn copy(folder: &Path) {
    for entry in fs::read_dir(tiny().join("model")).unwrap() {
        let from = entry.unwrap().path();
        fs::write(folder.join(from.file_name().unwrap()), fs::read(&from).unwrap()).unwrap();
    }
}

fn edit(folder: &Path, file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let path = folder.join(file);
    let changed = change(fs::read(&path).unwrap());
    fs::write(path, changed).unwrap();
}

fn replace(from: &'static str, to: &'static str) -> impl FnOnce(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1).into_bytes()
    }
}

/// What was done to the folder, how, the verdict, and words of its sentence.
type Case = (&'static str, fn(&Path), Verdict, &'static [&'static str]);

const WEIGHTS: &str = "model.safetensors";
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n\
oid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 3938320\n";

const CASES: &[Case] = &[
    (
        "one bit of a weight",
        |f| {
            edit(f, WEIGHTS, |mut bytes| {
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            })
        },
        Verdict::Incomplete,
        &["model.safetensors has SHA-256", "expected"],
    ),
    (
        "the weights are missing",
        |f| fs::remove_file(f.join(WEIGHTS)).unwrap(),
        Verdict::Incomplete,
        &["has neither model.safetensors nor model.safetensors.index.json"],
    ),
    (
        "a shard of the index is missing",
        |f| {
            fs::remove_file(f.join(WEIGHTS)).unwrap();
            let index =
                r#"{"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors"}}"#;
            fs::write(f.join("model.safetensors.index.json"), index).unwrap();
        },
        Verdict::Incomplete,
        &["shard model-00001-of-00002.safetensors", "is missing from"],
    ),
    (
        "a Git LFS pointer instead of the weights",
        |f| fs::write(f.join(WEIGHTS), LFS_POINTER).unwrap(),
        Verdict::Incomplete,
        &["model.safetensors", "LFS pointer"],
    ),
    (
        "weights cut short",
        |f| edit(f, WEIGHTS, |bytes| bytes[..bytes.len() - 1].to_vec()),
        Verdict::Malformed,
        &["model.safetensors is not a valid safetensors file"],
    ),
    (
        "no tokenizer",
        |f| fs::remove_file(f.join("tokenizer.json")).unwrap(),
        Verdict::Incomplete,
        &["tokenizer.json is missing from"],
    ),
    (
        "another tokenizer",
        |f| edit(f, "tokenizer.json", |bytes| [&bytes[..], b"\n"].concat()),
        Verdict::Incomplete,
        &["tokenizer.json has", "bytes, expected"],
    ),
    (
        "no generation config",
        |f| fs::remove_file(f.join("generation_config.json")).unwrap(),
        Verdict::Incomplete,
        &["generation_config.json is missing"],
    ),
    (
        "a config field that is not known",
        |f| edit(f, "config.json", replace("\"head_dim\"", "\"new_scaling\": 2, \"head_dim\"")),
        Verdict::Incomplete,
        &["field new_scaling (value 2) is not understood"],
    ),
    (
        "a config field with a value that is not modelled",
        |f| edit(f, "config.json", replace("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"")),
        Verdict::Incomplete,
        &["field hidden_act is \"gelu\", only \"silu\" is supported"],
    ),
    (
        "a config that is no JSON",
        |f| edit(f, "config.json", |bytes| bytes[1..].to_vec()),
        Verdict::Malformed,
        &["config.json is not valid JSON"],
    ),
    (
        "a config that says the same in other bytes",
        |f| edit(f, "config.json", |bytes| [&bytes[..], b"\n"].concat()),
        Verdict::Incomplete,
        &["config.json has", "bytes, expected"],
    ),
    (
        "an adapter beside the weights",
        |f| fs::write(f.join("adapter_config.json"), "{}").unwrap(),
        Verdict::Incomplete,
        &["adapter_config.json is present and not supported"],
    ),
    ("no folder", |f| fs::remove_dir_all(f).unwrap(), Verdict::Incomplete, &["cannot be read"]),
];

#[test]
fn another_model_is_named_by_what_differs() {
    for (name, change, verdict, words) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("model");
        fs::create_dir(&folder).unwrap();
        copy(&folder);
        change(&folder);
        // Weights are digested beside the execution: it begins if names, lengths and
        // small files are right, and its result is thrown away.
        let done = verify_in(&folder, *name == "one bit of a weight");
        assert_eq!(done.report.verdict(), *verdict, "{name}: {:?}", failures(&done));
        let failed = failures(&done);
        assert_eq!(failed.len(), 1, "{name}: one sentence: {failed:?}");
        let (subject, _, detail) = &failed[0];
        assert_eq!(*subject, Subject::Model, "{name}");
        assert!(!detail.contains('\n'), "{name}: {detail}");
        for check in &done.report.checks {
            let Outcome::NotDecided { reason } = &check.outcome else { continue };
            assert_eq!(reason, "not reached: the model is not the one stated", "{name}");
        }
        let undecided = |subject| {
            done.report.checks.iter().any(|check| {
                check.subject == subject && matches!(check.outcome, Outcome::NotDecided { .. })
            })
        };
        assert!(undecided(Subject::Prompt) && undecided(Subject::Execution), "{name}");
        for word in *words {
            assert!(detail.contains(word), "{name}: {word:?} is not in {detail:?}");
        }
    }
}

#[test]
fn files_that_are_no_part_of_the_model_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    fs::write(folder.path().join(".gitattributes"), "* binary\n").unwrap();
    fs::write(folder.path().join("README.md"), "read me\n").unwrap();
    let transcript = Making::default().make().seal();
    let done = verify(Request {
        file: transcript.as_bytes().to_vec().into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| Content::open(folder.path()),
        progress: &mut |_| {},
        diagnosing: None,
    });
    assert_verified(&done, "stray files");
}

/// Verifies in a copy of the folder whose weights are rewritten, length kept, as
/// soon as the re-execution has begun.
#[cfg(unix)]
fn verify_while_weights_change(file: &[u8]) -> Verified {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    let weights = fs::OpenOptions::new().write(true).open(folder.path().join(WEIGHTS)).unwrap();
    let half = weights.metadata().unwrap().len() / 2;
    let mut rewritten = false;
    let done = verify(Request {
        file: file.to_vec().into(),
        anchor: Anchor::Store(&support::trust()),
        nonce: None,
        challenge: None,
        simd: Simd::detect(),
        open_model: &|_| Content::open(folder.path()),
        progress: &mut |_| {
            if !rewritten {
                rewritten = true;
                weights.write_all_at(&vec![0x3c; half as usize], half).unwrap();
            }
        },
        diagnosing: None,
    });
    assert!(rewritten, "the execution never began");
    done
}

/// Without a second look at the files this was a false MISMATCH for an honest
/// transcript, and could be a VERIFIED for weights that are not the manifest's.
#[cfg(unix)]
#[test]
fn weights_that_change_during_the_run_decide_nothing() {
    let done = verify_while_weights_change(Making::default().make().seal().as_bytes());
    assert_eq!(done.report.verdict(), Verdict::Incomplete, "{:?}", done.report);
    let text = format!("{:?}", done.report);
    assert!(text.contains("model.safetensors") && text.contains("changed"), "{text}");
}
