//! `attest countersign`: what is signed, what is refused, and what counts.

use std::fs;

use attest::num::{Digest, sha256};
use attest::transcript::cose::{Envelope, REPORT};
use attest::transcript::countersignature::Countersignature;
use attest::transcript::key::PrivateKey;
use attest::transcript::signed::{FormVersion, StatedVerdict};
use attest::transcript::statement::Tool;
use serde_json::Value;

use crate::support::{Made, Making, TIME, key, other_key, trust_text};
use crate::{Home, end, fails, text, tiny_model};

/// A home with a transcript, the report on it, and the key of [`auditor`] 1.
fn reported(made: &Made, verdict: &str) -> Home {
    let home = Home::configured();
    home.write("t.cbor", made.seal().as_bytes());
    let model = tiny_model();
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--json", "--model", text(&model)]));
    assert_eq!(ended.json()["verdict"], verdict, "{}", ended.stdout);
    home.write("r.json", ended.stdout);
    auditor(1).write_new(&home.path("auditor.pem")).unwrap();
    home
}

pub(crate) fn auditor(seed: u8) -> PrivateKey {
    PrivateKey::from_seed(&[seed; 32])
}

pub(crate) fn entry(name: &str, key: &PrivateKey, rest: &str) -> String {
    let hex = key.public().to_hex();
    format!("[[key]]\nname = \"{name}\"\npublic_key = \"{hex}\"\n{rest}\n")
}

pub(crate) const AUDITOR: &str = "role = \"auditor\"\nmodels = \"*\"";

/// What auditors state of a transcript, at [`TIME`].
pub(crate) fn stated(made: &Made) -> Countersignature {
    Countersignature {
        version: FormVersion,
        transcript: made.seal().digest(),
        verdict: StatedVerdict::Verified,
        report: Digest([9; 32]),
        time: TIME,
        tool: Tool { name: "attest".into(), version: "0.1.0".into() },
    }
}

pub(crate) const SIGN: [&str; 6] =
    ["countersign", "t.cbor", "--report", "r.json", "--key", "auditor.pem"];

#[test]
fn an_auditor_counter_signs_what_the_report_says() {
    let made = Making::default().make();
    let home = reported(&made, "VERIFIED");
    let ended = end(home.attest(&SIGN).args(["--out", "c.cbor", "--json"]));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    let file = fs::read(home.path("c.cbor")).unwrap();
    let read = Countersignature::read(&file).unwrap();
    assert!(read.envelope.is_signed_by(&auditor(1).public()));
    assert_eq!(read.record.transcript, made.seal().digest());
    assert_eq!(read.record.verdict, StatedVerdict::Verified);
    assert_eq!(read.record.report, sha256(&[&fs::read(home.path("r.json")).unwrap()]));
    assert_eq!(read.record.tool.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(ended.json()["report_sha256"], read.record.report.to_string());

    home.write("a.toml", entry("office", &auditor(1), AUDITOR));
    let check = ["countersign", "--check", "c.cbor", "--transcript", "t.cbor", "--trust", "a.toml"];
    let ended = end(&mut home.attest(&check));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\"office\" may sign as auditor and says VERIFIED"));
    let json = end(home.attest(&check).arg("--json")).json();
    assert_eq!(json["verified_by"], 1);
    assert_eq!(json["countersignatures"][0]["auditor"], "office");
    // The trust file of the home knows the prover only.
    let ended = end(&mut home.attest(&check[..5]));
    assert_eq!(ended.exit, 3);
    assert!(ended.stdout.contains("is not in the trust store"), "{}", ended.stdout);
}

#[test]
fn what_is_not_verified_or_another_transcripts_is_not_counter_signed() {
    let made = Making::default().make();
    let mut lie = made.clone();
    lie.contents[0][0] ^= 1;
    lie.commit();
    let home = reported(&lie, "MISMATCH");
    fails(&mut home.attest(&SIGN), 2, &["r.json says MISMATCH, not VERIFIED", "--any-verdict"]);
    let ended = end(home.attest(&SIGN).args(["--any-verdict", "--out", "c.cbor"]));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    home.write("a.toml", entry("office", &auditor(1), AUDITOR));
    let check = ["countersign", "--check", "c.cbor", "--transcript", "t.cbor", "--trust", "a.toml"];
    let json = end(home.attest(&check).arg("--json")).json();
    assert_eq!(json["countersignatures"][0]["verdict"], "MISMATCH");
    assert_eq!(json["countersignatures"][0]["counted"], false);
    assert_eq!(json["verified_by"], 0, "it is valid, and no vote for the transcript");

    let home = reported(&made, "VERIFIED");
    let report = fs::read_to_string(home.path("r.json")).unwrap();
    home.write("t.cbor", lie.seal().as_bytes());
    fails(&mut home.attest(&SIGN), 2, &["r.json is on transcript", "the one at hand is"]);
    home.write("t.cbor", made.seal().as_bytes());
    home.write("r.json", report.replace("\"passed\"", "\"not_decided\""));
    fails(&mut home.attest(&SIGN), 2, &["r.json: not a report"]);
    let mut changed: Value = serde_json::from_str(&report).unwrap();
    changed["transcript"] = Value::Null;
    home.write("r.json", changed.to_string());
    fails(&mut home.attest(&SIGN), 2, &["a file that is no transcript"]);
    home.write("r.json", &report);
    // Nothing that is read is written over; the prover is no auditor.
    for kept in ["auditor.pem", "r.json", "t.cbor"] {
        let before = fs::read(home.path(kept)).unwrap();
        fails(home.attest(&SIGN).args(["--overwrite", "--out", kept]), 2, &["is read by this run"]);
        assert_eq!(fs::read(home.path(kept)).unwrap(), before);
    }
    fs::remove_file(home.path("auditor.pem")).unwrap();
    key().write_new(&home.path("auditor.pem")).unwrap();
    fails(&mut home.attest(&SIGN), 2, &["signed the transcript itself"]);
    assert!(!home.path("countersignature.cbor").exists(), "a refusal leaves no file");
}

#[test]
fn each_counter_signature_is_judged_and_an_auditor_counts_once() {
    let made = Making::default().make();
    let home = Home::configured();
    home.write("t.cbor", made.seal().as_bytes());
    let named = "role = \"auditor\"\nmodels = [\"another\"]";
    let trust = [
        entry(
            "a",
            &auditor(1),
            &format!("{AUDITOR}\nvalid_from = 2026-11-30\nvalid_until = 2026-12-01"),
        ),
        entry("a", &auditor(2), AUDITOR),
        entry("b", &auditor(3), AUDITOR),
        entry("p", &auditor(4), "role = \"prover\"\nmodels = \"*\""),
        entry("m", &auditor(5), named),
        entry("r", &auditor(6), &format!("{AUDITOR}\nrevoked_at = 2027-01-01\nreason = \"lost\"")),
        trust_text("\"*\""),
        entry("test", &auditor(7), AUDITOR),
    ];
    home.write("a.toml", trust.concat());
    let good = stated(&made);
    let seal = |seed: u8| good.seal(&auditor(seed));
    let mut flipped = seal(1);
    *flipped.last_mut().unwrap() ^= 1;
    let late = Countersignature { time: TIME + 86_400, ..good.clone() };
    let other = Countersignature { transcript: Digest([0; 32]), ..good.clone() };
    let partial = Countersignature { verdict: StatedVerdict::Partial, ..good.clone() };
    let report = Envelope::seal_as(REPORT, &good.report.0, &auditor(1));
    // (file, exit code, words, auditors who say VERIFIED)
    let cases: Vec<(&str, Vec<u8>, i32, &str)> = vec![
        ("good", seal(1), 0, "\"a\" may sign as auditor and says VERIFIED"),
        ("partial", partial.seal(&auditor(1)), 0, "says PARTIAL"),
        ("flipped", flipped, 3, "the signature is not valid under key"),
        ("late", late.seal(&auditor(1)), 3, "is after the window of the key of \"a\""),
        ("other transcript", other.seal(&auditor(1)), 3, "it is of transcript 0000"),
        ("unknown key", good.seal(&other_key()), 3, "is not in the trust store"),
        ("a prover's key", seal(4), 3, "trusted as prover, not as auditor"),
        ("another model's", seal(5), 3, "is not trusted for model"),
        ("revoked", seal(6), 3, "was revoked at 2027-01-01"),
        ("the prover's key", good.seal(&key()), 3, "trusted as prover, not as auditor"),
        ("the prover's name", seal(7), 3, "\"test\" is the prover of this transcript"),
        ("cut", seal(1)[..99].to_vec(), 4, "byte"),
        ("longer", [&seal(1)[..], b"\0"].concat(), 4, "1 bytes after"),
        ("a report's signature", report, 4, "must be application/attest-countersignature+cbor"),
        ("a transcript", made.seal().as_bytes().to_vec(), 4, "must be application/attest-counter"),
        ("text", b"hello".to_vec(), 4, "not a counter-signature"),
    ];
    let check = |names: &[&str]| {
        let args = ["--transcript", "t.cbor", "--trust", "a.toml"];
        end(home.attest(&["countersign", "--check"]).args(names).args(args))
    };
    for (name, file, exit, words) in &cases {
        home.write("c.cbor", file);
        let ended = check(&["c.cbor"]);
        assert_eq!(ended.exit, *exit, "{name}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains(words), "{name}: {}", ended.stdout);
        let counted = if *name == "good" { "once: 1" } else { "once: 0" };
        assert!(ended.stdout.contains(counted), "{name}: {}", ended.stdout);
    }
    for seed in 1..=6 {
        home.write(&format!("{seed}.cbor"), seal(seed));
    }
    home.write("cut.cbor", &seal(1)[..9]);
    // (files, exit code, auditors)
    let cases: [(&[&str], i32, &str); 6] = [
        (&["1.cbor", "3.cbor"], 0, "once: 2"),
        (&["1.cbor", "1.cbor"], 0, "once: 1"),
        (&["1.cbor", "2.cbor"], 0, "once: 1"),
        (&["2.cbor", "3.cbor", "1.cbor", "3.cbor"], 0, "once: 2"),
        (&["4.cbor", "3.cbor", "cut.cbor"], 4, "once: 1"),
        (&["3.cbor", "6.cbor"], 3, "once: 1"),
    ];
    for (names, exit, words) in cases {
        let ended = check(names);
        assert_eq!(ended.exit, exit, "{names:?}: {}", ended.stdout);
        assert!(ended.stdout.contains(words), "{names:?}: {}", ended.stdout);
    }
    fails(
        home.attest(&["countersign", "--check", "gone", "--transcript", "t.cbor"])
            .args(["--trust", "a.toml"]),
        2,
        &["gone"],
    );
    assert_eq!(end(&mut home.attest(&["countersign", "--check", "1.cbor"])).exit, 2);
    assert_eq!(end(&mut home.attest(&["countersign", "t.cbor"])).exit, 2);
}
