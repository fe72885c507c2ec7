//! The published schemas: what the program prints and carries fits them, and
//! what was tampered with does not.

#![allow(clippy::unwrap_used, clippy::panic)] // a test: a panic is its report

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use attest::interop::in_toto::{Exporter, Statement};
use attest::num::Digest;
use attest::transcript::Transcript;
use attest::transcript::countersignature::Countersignature;
use attest::transcript::custody::{Action, Entry};
use attest::transcript::signed::{FormVersion, StatedVerdict};
use attest::transcript::statement::{LogitsMode, Tool, TraceMode};
use jsonschema::Validator;
use serde_json::{Value, json};

use support::{Made, Making, key, other_key, tiny, trust_text};

fn schema(name: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn require(schema: &Validator, value: &Value, what: &str) {
    let errors: Vec<String> =
        schema.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
}

fn sealed(made: &Made) -> Vec<u8> {
    made.seal().as_bytes().to_vec()
}

fn tracing(trace: TraceMode) -> Made {
    Making { trace, ..Making::default() }.make()
}

/// Changes the first byte of a section and every commitment to it.
fn lie(mut made: Made, section: usize) -> Vec<u8> {
    made.contents[section][0] ^= 1;
    made.commit();
    sealed(&made)
}

/// Runs `attest verify --json` in an empty home.
fn verify(folder: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attest"));
    command.current_dir(folder).env("HOME", folder).env("ATTEST_CONFIG", folder);
    for variable in ["ATTEST_MODELS", "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"] {
        command.env_remove(variable);
    }
    let output = command.args(["verify", "--json"]).args(args).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Name, file, options, verdict.
type Case<'a> = (&'a str, Vec<u8>, &'a [&'a str], &'a str);

#[test]
fn every_report_fits_its_schema() {
    let schema = schema("report.schema.json");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("mine.toml"), trust_text("\"*\"")).unwrap();
    let model = tiny().join("model");
    let model = model.to_str().unwrap();
    let good = Making::default().make();
    let hashed = Making { logits: LogitsMode::Hash, ..Making::default() }.make();
    let mut prompt = good.clone();
    prompt.statement.prompt.push(b'!');
    let strange = Transcript::seal(&good.statement, &good.contents, &other_key()).unwrap();
    let cut = sealed(&good)[1..].to_vec();
    let all: &[&str] = &["--trust", "mine.toml", "--model", model];
    let asked: &[&str] = &["--trust", "mine.toml", "--model", model, "--nonce"];
    let stale = [asked, &["00"]].concat();
    let fresh = [asked, &["abababababababababababababababab"]].concat();
    let modelless: &[&str] = &["--trust", "mine.toml"];
    let untrusting: &[&str] = &["--model", model];
    let anyone: &[&str] = &["--insecure-accept-any-key", "--model", model];
    let cases: Vec<Case> = vec![
        ("freshness not asked", sealed(&good), all, "VERIFIED"),
        ("fresh, steps", sealed(&tracing(TraceMode::Steps)), &fresh, "VERIFIED"),
        ("digests only, layers", sealed(&tracing(TraceMode::Layers)), all, "VERIFIED"),
        ("a changed logit", lie(good.clone(), 0), all, "MISMATCH"),
        ("a changed digest of a row", lie(hashed, 0), all, "MISMATCH"),
        ("a changed trace", lie(tracing(TraceMode::Steps), 1), all, "MISMATCH"),
        ("another prompt", sealed(&prompt), all, "MISMATCH"),
        ("another signer", strange.as_bytes().to_vec(), all, "UNTRUSTED"),
        ("an old nonce", sealed(&good), &stale, "UNTRUSTED"),
        ("no trust file", sealed(&good), untrusting, "UNTRUSTED"),
        ("any key", sealed(&good), anyone, "UNTRUSTED"),
        ("a cut file", cut, all, "MALFORMED"),
        ("no model", sealed(&good), modelless, "INCOMPLETE"),
    ];
    for (name, file, options, verdict) in &cases {
        fs::write(folder.join("t.cbor"), file).unwrap();
        let report = verify(folder, &[&["t.cbor"], *options].concat());
        assert_eq!(report["verdict"], *verdict, "{name}: {report:#}");
        require(&schema, &report, name);
    }
    fs::write(folder.join("u.cbor"), sealed(&good)).unwrap();
    let several = verify(folder, &[&["t.cbor", "u.cbor"], all].concat());
    assert_eq!(several["transcripts"].as_array().unwrap().len(), 2);
    require(&schema, &several, "several");
}

#[test]
fn what_no_report_says_does_not_fit() {
    let schema = schema("report.schema.json");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("mine.toml"), trust_text("\"*\"")).unwrap();
    fs::write(folder.join("t.cbor"), lie(Making::default().make(), 0)).unwrap();
    let model = tiny().join("model");
    let args = ["t.cbor", "--trust", "mine.toml", "--model", model.to_str().unwrap()];
    let report = verify(folder, &args);
    require(&schema, &report, "unchanged");
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("another field", |r| r["more"] = json!(1)),
        ("a field less", |r| drop(r.as_object_mut().unwrap().remove("digests"))),
        ("another word", |r| r["verdict"] = json!("OK")),
        ("the exit code of another verdict", |r| r["exit"] = json!(0)),
        ("a short digest", |r| r["transcript"] = json!("6f14")),
        ("nine checks", |r| drop(r["checks"].as_array_mut().unwrap().pop())),
        ("two checks exchanged", |r| r["checks"].as_array_mut().unwrap().swap(0, 1)),
        ("a passed check with a reason", |r| r["checks"][0]["reason"] = json!("")),
        ("a failure without its verdict", |r| {
            r["checks"][7].as_object_mut().unwrap().remove("leads_to");
        }),
        ("a failure that verifies", |r| r["checks"][7]["leads_to"] = json!("VERIFIED")),
        ("bits that are no bits", |r| {
            r["checks"][7]["finding"]["difference"]["recorded"] = json!("3f8");
        }),
        ("a difference of two kinds", |r| {
            r["checks"][7]["finding"]["difference"]["kind"] = json!("length");
        }),
    ];
    for (name, change) in cases {
        let mut changed = report.clone();
        change(&mut changed);
        assert_ne!(changed, report, "{name}");
        assert!(!schema.is_valid(&changed), "the schema accepts {name}");
    }
}

#[test]
fn every_catalogue_fits_the_schema_of_its_form() {
    let (catalog, listing) = (schema("catalog.schema.json"), schema("listing.schema.json"));
    for (id, text) in attest::data::CATALOGS {
        let mut value: Value = serde_json::from_str(text).unwrap();
        // Listings are those that say their format.
        let schema = if value.get("format").is_some() { &listing } else { &catalog };
        require(schema, &value, id);
        value["more"] = json!(1);
        assert!(!schema.is_valid(&value), "{id}: the schema accepts another field");
    }
}

#[test]
fn counter_signatures_and_custody_entries_fit_their_schema() {
    let tool = || Tool { name: "attest".into(), version: "0.1.0".into() };
    let countersignature = |verdict| Countersignature {
        version: FormVersion,
        transcript: Digest([1; 32]),
        verdict,
        report: Digest([2; 32]),
        time: 1_796_045_700,
        tool: tool(),
    };
    let entry = |action, report: Option<StatedVerdict>, note: Option<&str>| Entry {
        version: FormVersion,
        number: 1 + note.map_or(0, |_| 1),
        previous: note.map(|_| Digest([3; 32])),
        time: 1_796_045_700,
        action,
        transcript: Digest([1; 32]),
        verdict: report,
        report: report.map(|_| Digest([2; 32])),
        note: note.map(Into::into),
        tool: tool(),
        tables: Digest([4; 32]),
    };
    use StatedVerdict::{Incomplete, Malformed, Mismatch, Partial, Untrusted, Verified};
    for verdict in [Verified, Mismatch, Untrusted, Malformed, Incomplete, Partial] {
        assert!(fits("countersignature-envelope", &countersignature(verdict).seal(&key())));
        let logged = entry(Action::Verified, Some(verdict), None);
        assert!(fits("entry-envelope", &logged.seal(&key())), "{verdict:?}");
    }
    for action in [Action::Received, Action::Countersigned, Action::HandedOver, Action::Note] {
        let logged = entry(action, None, Some("a note"));
        assert!(fits("entry-envelope", &logged.seal(&key())), "{action:?}");
    }
    // Neither is the other, nor a transcript's.
    let sealed = countersignature(Verified).seal(&key());
    let logged = entry(Action::Note, None, Some("a note")).seal(&key());
    assert!(!fits("entry-envelope", &sealed) && !fits("countersignature-envelope", &logged));
    let transcript = Making::default().make().seal();
    assert!(!fits("entry-envelope", transcript.item_0()));
    assert!(!fits("countersignature-envelope", transcript.item_0()));
    // A word that is none, in a payload of the right length.
    let mut other = sealed.clone();
    let at = other.windows(8).position(|found| found == b"VERIFIED").unwrap();
    other[at] = b'v';
    assert!(!fits("countersignature-envelope", &other));
}

fn fits(rule: &str, bytes: &[u8]) -> bool {
    let schema = format!("start = {rule}\n{}", include_str!("../schemas/custody.cddl"));
    cddl::validate_cbor_from_slice(&schema, bytes, None).is_ok()
}

#[test]
fn every_export_fits_the_schema() {
    let schema = schema("in-toto.schema.json");
    let exporter = || Exporter {
        name: "attest".into(),
        version: "1".into(),
        time: "2026-12-01T00:00:00Z".into(),
    };
    let value = |made: &Made| {
        let statement = Statement::of(&made.seal(), exporter()).unwrap();
        let bytes = statement.to_json();
        assert_eq!(Statement::from_json(&bytes).unwrap(), statement);
        serde_json::from_slice::<Value>(&bytes).unwrap()
    };
    let mut silent = Making::default().make();
    silent.statement.tokens_out.clear();
    silent.statement.nonce = None;
    let hashed = Making { logits: LogitsMode::Hash, ..Making::default() }.make();
    let mut rooted = tracing(TraceMode::Layers);
    rooted.statement.model.oms_root = Some(attest::num::sha256(&[]));
    for (made, what) in [(&silent, "no output"), (&hashed, "hashed"), (&rooted, "rooted")] {
        require(&schema, &value(made), what);
    }
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("another type", |s| s["_type"] = json!("https://in-toto.io/Statement/v0.1")),
        ("a checked transcript", |s| s["predicate"]["transcriptChecked"] = json!(true)),
        ("another field", |s| s["predicate"]["more"] = json!(1)),
        ("a field less", |s| {
            s["predicate"].as_object_mut().unwrap().shift_remove("nonce");
        }),
        ("output without its digest", |s| drop(s["subject"].as_array_mut().unwrap().pop())),
        ("a digest of nothing", |s| s["predicate"]["tokens"]["out"] = json!(0)),
        ("half a byte of a nonce", |s| s["predicate"]["nonce"] = json!("abc")),
        ("subjects exchanged", |s| s["subject"].as_array_mut().unwrap().reverse()),
    ];
    for (name, change) in cases {
        let mut changed = value(&rooted);
        change(&mut changed);
        assert!(!schema.is_valid(&changed), "the schema accepts {name}");
        let bytes = changed.to_string();
        assert!(Statement::from_json(bytes.as_bytes()).is_err(), "the reader accepts {name}");
    }
}
