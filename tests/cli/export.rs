//! `attest export`: envelopes that other tools read, and every refusal of one.

use std::fs;
use std::process::Command;

use attest::interop::dsse::{Envelope, Signature};
use attest::num::sha256;
use attest::transcript::Transcript;
use attest::transcript::key::PrivateKey;
use attest::transcript::statement::TraceMode;
use base64ct::{Base64, Base64Url, Encoding as _};
use serde_json::{Value, json};

use crate::support::{Made, Making, TIME, key, other_key};
use crate::{Home, end, fails, text};

/// A home with a transcript, exported by the key that signed it.
fn exported(made: &Made) -> Home {
    let home = Home::configured();
    home.write("t.cbor", made.seal().as_bytes());
    let time = TIME.to_string();
    let ended =
        end(&mut home.attest(&["export", "t.cbor", "--out", "e.json", "--time", &time, "--json"]));
    assert_eq!((ended.exit, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.json()["transcript"], made.seal().digest().to_string());
    home
}

fn envelope(home: &Home) -> Value {
    serde_json::from_slice(&fs::read(home.path("e.json")).unwrap()).unwrap()
}

fn payload(envelope: &Value) -> Vec<u8> {
    Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap()
}

/// Signs another payload and writes the envelope.
fn write_signed(home: &Home, payload: &[u8], key: &PrivateKey) {
    home.write("e.json", Envelope::seal(payload.to_vec(), key).to_json());
}

const CHECK: [&str; 3] = ["export", "--check", "e.json"];

#[test]
fn an_export_says_what_the_transcript_states() {
    let made = Making { trace: TraceMode::Steps, ..Making::default() }.make();
    let home = exported(&made);
    let statement: Value = serde_json::from_slice(&payload(&envelope(&home))).unwrap();
    let (stated, predicate) = (&made.statement, &statement["predicate"]);
    assert_eq!(statement["subject"][0]["name"], "transcript");
    let digest = sha256(&[made.seal().statement_bytes()]).to_string();
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest);
    let words: Vec<u8> = stated.tokens_out.iter().flat_map(|id| id.to_le_bytes()).collect();
    assert_eq!(statement["subject"][1]["name"], "tokens_out.u32le");
    assert_eq!(statement["subject"][1]["digest"]["sha256"], sha256(&[&words]).to_string());
    assert_eq!(predicate["model"]["manifestDigest"], stated.model.digest.to_string());
    assert_eq!(predicate["tokens"], json!({ "in": stated.tokens_in.len(), "out": 3 }));
    assert_eq!(predicate["nonce"], "ab".repeat(16));
    assert_eq!(predicate["logits"]["root"], stated.logits.root.to_string());
    assert_eq!(predicate["trace"]["root"], stated.trace.root.unwrap().to_string());
    assert_eq!(predicate["claimedTime"], "2026-11-30T13:35:00Z");

    let checked =
        end(&mut home.attest(&[&CHECK[..], &["--transcript", "t.cbor", "--json"]].concat()));
    assert_eq!(checked.exit, 0, "{}", checked.stderr);
    let checked = checked.json();
    assert_eq!((&checked["exporter"], &checked["role"]), (&json!("test"), &json!("prover")));
    assert_eq!(checked["transcript_checked"], false);
    assert_eq!(checked["compared_with_transcript"], true);
    assert_eq!(checked["nonce"], "ab".repeat(16));
    assert_eq!(checked["statement"], statement);
    let said = end(&mut home.attest(&CHECK)).stdout;
    assert!(said.starts_with("NOT CHECKED: the transcript itself"), "{said}");
}

#[test]
fn a_run_without_output_has_no_digest_of_nothing_among_its_subjects() {
    let mut made = Making::default().make();
    made.statement.tokens_out.clear();
    let home = exported(&made);
    let statement: Value = serde_json::from_slice(&payload(&envelope(&home))).unwrap();
    assert_eq!(statement["subject"].as_array().unwrap().len(), 1);
    assert_eq!(end(&mut home.attest(&CHECK)).exit, 0);
}

#[test]
fn whoever_holds_transcripts_may_export_them() {
    let home = exported(&Making::default().make());
    let entry = |role: &str, rest: &str| {
        let key = key().public().to_hex();
        format!(
            "[[key]]\nname = \"lab\"\npublic_key = \"{key}\"\nrole = \"{role}\"\nmodels = \"*\"\n{rest}\n"
        )
    };
    // (trust file, exit code, words, reason)
    let cases = [
        (entry("prover", ""), 0, "", "a prover passes on what they ran"),
        (entry("auditor", ""), 0, "", "an auditor passes on what they checked"),
        (
            entry("publisher", ""),
            3,
            "trusted as publisher, not as prover or auditor",
            "no transcripts",
        ),
        (entry("auditor", "valid_from = 2026-11-30"), 0, "", "within the window"),
        (entry("auditor", "valid_until = 2026-11-30"), 3, "after the window", "exported too late"),
        (entry("prover", "valid_from = 2026-12-01"), 3, "before the window", "exported too early"),
        (
            entry("prover", "revoked_at = 2026-12-01\nreason = \"stolen\""),
            3,
            "was revoked",
            "though the export is earlier",
        ),
        (entry("prover", "").replace("\"*\"", "[\"other\"]"), 3, "not trusted for model", "other"),
        (String::new(), 3, "is not in the trust store", "an empty store"),
    ];
    for (trust, exit, words, reason) in cases {
        home.write("mine.toml", trust);
        let args = [&CHECK[..], &["--trust", "mine.toml"]].concat();
        let ended = end(&mut home.attest(&args));
        assert_eq!(ended.exit, exit, "{reason}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{reason}: {}", ended.stderr);
    }
    fs::remove_file(home.config().join("trust.toml")).unwrap();
    fails(&mut home.attest(&CHECK), 3, &["no trust file was given"]);
}

#[test]
fn every_bit_of_payload_and_signature_counts() {
    let home = exported(&Making::default().make());
    let good = envelope(&home);
    let payload = payload(&good);
    let signature = Base64::decode_vec(good["signatures"][0]["sig"].as_str().unwrap()).unwrap();
    let write = |payload: &[u8], signature: &[u8]| {
        let mut changed = good.clone();
        changed["payload"] = Base64::encode_string(payload).into();
        changed["signatures"][0]["sig"] = Base64::encode_string(signature).into();
        home.write("e.json", changed.to_string());
    };
    write(&payload, &signature);
    assert_eq!(end(&mut home.attest(&CHECK)).exit, 0);
    // A few through the program; all of them through the library.
    for at in [0, payload.len() / 2, payload.len() - 1] {
        let mut changed = payload.clone();
        changed[at] ^= 1;
        write(&changed, &signature);
        fails(&mut home.attest(&CHECK), 3, &["the signature is not valid under key"]);
    }
    let sealed = Envelope::seal(payload.clone(), &key());
    let is_signed =
        |envelope: &Envelope| envelope.is_signed_by(&envelope.signatures[0], &key().public());
    assert!(is_signed(&sealed));
    for bit in 0..payload.len() * 8 {
        let mut changed = sealed.clone();
        changed.payload[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_signed(&changed), "bit {bit} of the payload");
    }
    for bit in 0..512 {
        let mut changed = sealed.clone();
        changed.signatures[0].bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_signed(&changed), "bit {bit} of the signature");
    }
}

#[test]
fn refuses_envelopes_that_are_none() {
    let home = exported(&Making::default().make());
    let good = fs::read_to_string(home.path("e.json")).unwrap();
    let twice = |text: &str, member: &str| {
        let start = text.find(member).unwrap();
        format!("{}{},{}", &text[..start], "\"payloadType\":\"x\"", &text[start..])
    };
    let signature = envelope(&home)["signatures"][0].to_string();
    // (file, words, reason)
    let cases = [
        (String::new(), "not a DSSE envelope", "nothing"),
        ("[]".into(), "not a DSSE envelope", "a list"),
        (good.replace("in-toto+json", "in-toto"), "the payload type is", "another type"),
        (good.replace("\"payloadType\"", "\"payload_type\""), "missing field", "no type"),
        (twice(&good, "\"payloadType\""), "appears twice", "a member twice"),
        (good.replace(&signature, ""), "0 signatures", "unsigned"),
        (
            good.replace(&signature, &format!("{signature},{signature}")),
            "signatures[1] appears twice",
            "one signature twice",
        ),
        (good.replacen("\"payload\":\"", "\"payload\":\"=", 1), "payload is not base64", "base64"),
        (good.clone() + "{}", "trailing characters", "something behind it"),
        (" ".repeat(1 << 20) + &good, "at most 1048576 are read", "too long"),
    ];
    for (file, words, reason) in cases {
        home.write("e.json", file);
        let ended = end(&mut home.attest(&CHECK));
        assert_eq!(ended.exit, 4, "{reason}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{reason}: {}", ended.stderr);
    }
}

#[test]
fn refuses_signed_statements_that_are_no_exports() {
    type Change = fn(&mut Value);
    let home = exported(&Making::default().make());
    let good: Value = serde_json::from_slice(&payload(&envelope(&home))).unwrap();
    let cases: [(Change, &str); 12] = [
        (|s| s["_type"] = json!("https://in-toto.io/Statement/v0.1"), "_type is"),
        (|s| s["predicateType"] = json!("https://slsa.dev/provenance/v1"), "predicateType is"),
        (|s| s["more"] = json!(1), "unknown field `more`"),
        (|s| s["predicate"]["more"] = json!(1), "unknown field `more`"),
        (|s| s["predicate"]["transcriptChecked"] = json!(true), "an export checks nothing"),
        (|s| s["predicate"]["formatVersion"] = json!(2), "formatVersion is 2"),
        (
            |s| drop(s["predicate"].as_object_mut().unwrap().shift_remove("nonce")),
            "missing field `nonce`",
        ),
        (|s| s["subject"] = json!([]), "the subjects are []"),
        (|s| s["subject"].as_array_mut().unwrap().reverse(), "the subjects are"),
        (
            |s| s["subject"][0]["digest"]["sha256"] = json!("AB".repeat(32)),
            "not lower-case hex digits",
        ),
        (|s| s["predicate"]["logits"]["root"] = json!("ab"), "a digest of 1 bytes"),
        (|s| s["predicate"]["exporter"]["time"] = json!("2026-11-30"), "not in the form"),
    ];
    for (change, words) in cases {
        let mut changed = good.clone();
        change(&mut changed);
        write_signed(&home, changed.to_string().as_bytes(), &key());
        fails(&mut home.attest(&CHECK), 4, &[words]);
    }
    // Before the signature is known to be good, none of this is looked at.
    write_signed(&home, b"{}", &other_key());
    fails(&mut home.attest(&CHECK), 3, &["is not in the trust store"]);
}

#[test]
fn an_export_is_held_against_its_transcript() {
    let made = Making::default().make();
    let home = exported(&made);
    let mut other = made.clone();
    other.statement.claimed_time += 1;
    home.write("o.cbor", other.seal().as_bytes());
    let against = |file| [&CHECK[..], &["--transcript", file]].concat();
    fails(&mut home.attest(&against("o.cbor")), 2, &["the export is of transcript"]);
    home.write("cut.cbor", &made.seal().as_bytes()[..100]);
    fails(&mut home.attest(&against("cut.cbor")), 4, &["cut.cbor: byte"]);
    fails(&mut home.attest(&against("absent.cbor")), 2, &["absent.cbor"]);

    // A trusted key that says something else of the same transcript.
    let mut statement: Value = serde_json::from_slice(&payload(&envelope(&home))).unwrap();
    statement["predicate"]["model"]["name"] = json!("a better model");
    write_signed(&home, statement.to_string().as_bytes(), &key());
    assert_eq!(end(&mut home.attest(&CHECK)).exit, 0, "nothing to hold it against");
    let words = ["does not say what the transcript states: predicate.model.name"];
    fails(&mut home.attest(&against("t.cbor")), 4, &words);
}

#[test]
fn reads_what_dsse_allows_others_to_write() {
    let home = exported(&Making::default().make());
    let good = envelope(&home);
    let statement = payload(&good);
    let signature = Base64::decode_vec(good["signatures"][0]["sig"].as_str().unwrap()).unwrap();
    let stranger = Envelope::seal(statement.clone(), &other_key()).signatures.remove(0);
    let with =
        |signatures: Vec<Signature>| Envelope { payload: statement.clone(), signatures }.to_json();
    let ours = |key_id: &str| Signature { key_id: key_id.into(), bytes: signature.clone() };
    let id = key().public().id().to_string();
    let mut url_safe = good.clone();
    url_safe["payload"] = Base64Url::encode_string(&statement).into();
    url_safe["signatures"][0]["sig"] = Base64Url::encode_string(&signature).into();
    let mut hintless = good.clone();
    hintless["signatures"][0].as_object_mut().unwrap().shift_remove("keyid");
    let mut more = good.clone();
    more["certificates"] = json!([]);
    // (envelope, exit code, reason)
    let cases = [
        (url_safe.to_string(), 0, "the URL-safe alphabet"),
        (hintless.to_string(), 0, "no hint"),
        (with(vec![ours("")]), 0, "an empty hint"),
        (more.to_string(), 0, "a member that DSSE does not define"),
        (with(vec![stranger.clone(), ours(&id)]), 0, "a stranger signed, too"),
        (
            with(vec![Signature { key_id: "x".into(), bytes: vec![1; 71] }, ours(&id)]),
            0,
            "another algorithm",
        ),
        (with(vec![ours("0000000000000000")]), 3, "a hint that excludes every key"),
        (with(vec![stranger]), 3, "a stranger alone"),
        (with(vec![Signature { key_id: id.clone(), bytes: vec![0; 64] }]), 3, "zeros"),
    ];
    for (file, exit, reason) in cases {
        home.write("e.json", file);
        let ended = end(&mut home.attest(&CHECK));
        assert_eq!(ended.exit, exit, "{reason}: {}", ended.stderr);
    }
}

#[test]
fn refuses_what_it_cannot_export_or_write() {
    let home = exported(&Making::default().make());
    let make = |more: &[&'static str]| [&["export", "t.cbor", "--out"], more].concat();
    fails(&mut home.attest(&make(&["e.json"])), 2, &["e.json exists; nothing was written"]);
    fails(&mut home.attest(&make(&["t.cbor", "--overwrite"])), 2, &["is read by this run"]);
    let key = home.config().join("key.pem");
    let over_key = ["export", "t.cbor", "--out", text(&key), "--overwrite"];
    fails(&mut home.attest(&over_key), 2, &["is read by this run"]);
    fails(&mut home.attest(&make(&["f.json", "--key", "absent.pem"])), 2, &["absent.pem"]);
    home.write("t.cbor", b"not a transcript");
    fails(&mut home.attest(&make(&["f.json"])), 4, &["t.cbor: byte 0"]);
    let mut late = Making::default().make();
    late.statement.claimed_time = 253_402_300_800;
    home.write("t.cbor", late.seal().as_bytes());
    fails(&mut home.attest(&make(&["f.json"])), 2, &["is after the year 9999"]);
    assert!(!home.path("f.json").exists());
    for args in [&["export"][..], &["export", "t.cbor"], &["export", "t.cbor", "--check", "e.json"]]
    {
        assert_eq!(end(&mut home.attest(args)).exit, 2, "{args:?}");
    }
}

#[test]
fn an_independent_reader_agrees() {
    let version = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let openssl = version("openssl", "version").is_some_and(|text| {
        let major =
            text.strip_prefix("OpenSSL ").and_then(|rest| rest.split('.').next()?.parse().ok());
        major.is_some_and(|major: u32| major >= 3)
    });
    if version("python3", "--version").is_none() || !openssl {
        eprintln!("skipped: needs python3 and OpenSSL 3 or later");
        return;
    }
    let home = exported(&Making::default().make());
    home.write("public.pem", key().public().to_pem());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/check_export.py");
    let run = |transcript: &str| {
        let mut command = Command::new("python3");
        command.current_dir(home.path("")).args([script, "e.json", "public.pem", transcript]);
        command.output().unwrap()
    };
    let good = run("t.cbor");
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    let digest = Transcript::parse(fs::read(home.path("t.cbor")).unwrap()).unwrap().digest();
    assert!(String::from_utf8_lossy(&good.stdout).contains(&digest.to_string()));
    let mut other = Making::default().make();
    other.statement.claimed_time += 1;
    home.write("o.cbor", other.seal().as_bytes());
    assert!(!run("o.cbor").status.success(), "of another transcript");
}
