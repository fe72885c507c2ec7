//! `attest report`: the page, what it refuses, and the auditor's signature.

use std::fs;

use attest::transcript::key::PrivateKey;
use attest::transcript::statement::{LogitsMode, TraceMode};
use serde_json::{Value, json};

use crate::support::{Made, Making, key, model, trust_text};
use crate::{Home, end, fails, text, tiny_model};

/// A home with a transcript and the report on it.
fn reported(made: &Made, verdict: &str) -> Home {
    let home = Home::configured();
    home.write("t.cbor", made.seal().as_bytes());
    verify(&home, verdict);
    home
}

fn verify(home: &Home, verdict: &str) {
    let model = tiny_model();
    let args = ["verify", "t.cbor", "--json", "--model", text(&model)];
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.json()["verdict"], verdict, "{}", ended.stdout);
    home.write("r.json", ended.stdout);
}

fn auditor() -> PrivateKey {
    PrivateKey::from_seed(&[0x33; 32])
}

fn page(home: &Home, options: &[&str]) -> String {
    let args = [&["report", "t.cbor", "--report", "r.json", "--overwrite"], options].concat();
    let ended = end(&mut home.attest(&args));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    fs::read_to_string(home.path("report.html")).unwrap()
}

/// A transcript whose last bit of a logit was changed.
fn lie(trace: TraceMode) -> Made {
    let mut made = Making { trace, ..Making::default() }.make();
    made.contents[0][0] ^= 1;
    made.commit();
    made
}

/// Nothing of the page loads or runs anything.
fn assert_self_contained(page: &str) {
    for word in
        ["<script", "src=", "@import", "<iframe", "<object", "<form", "onload", "http:", "https:"]
    {
        assert!(!page.contains(word), "{word} is in the page");
    }
    let links: Vec<&str> = page.matches("href=").collect();
    assert_eq!(links.len(), 1, "the empty icon");
    assert_eq!(page.matches("url(").count(), page.matches("url(#").count(), "fills of the page");
}

#[test]
fn the_page_says_everything_that_the_report_says() {
    let made = Making { trace: TraceMode::Steps, ..Making::default() }.make();
    let home = reported(&made, "VERIFIED");
    let page = page(&home, &["--model", text(&tiny_model())]);
    assert_self_contained(&page);
    let report: Value = serde_json::from_slice(&fs::read(home.path("r.json")).unwrap()).unwrap();
    let at =
        |words: &str| page.find(words).unwrap_or_else(|| panic!("{words:?} is not in the page"));
    for check in report["checks"].as_array().unwrap() {
        let subject = check["subject"].as_str().unwrap();
        at(&format!("<b>{subject}</b>"));
        let words = check.get("detail").or(check.get("reason")).unwrap().as_str().unwrap();
        at(&words.replace('"', "&#34;").replace('\'', "&#39;"));
    }
    for claim in report["claims"].as_array().unwrap() {
        at(claim["field"].as_str().unwrap());
    }
    at(&made.seal().digest().to_string());
    at(&made.statement.model.digest.to_string());
    at(report["verifier"]["catalogue"]["digest"].as_str().unwrap());
    at(report["verifier"]["checked_at"].as_str().unwrap());
    at("Call me");
    // The verdict comes first, then who, what was checked and what was not.
    let headings = [
        "Who and what",
        "What was checked",
        "What was not checked",
        "Coverage",
        "Logits of the generated tokens",
        "On the signer's word",
        "Limits",
        "Tools and tables",
        "Signature of the auditor",
    ];
    let mut order = vec![at("<h1>VERIFIED")];
    order.extend(headings.map(|heading| at(&format!("<h2>{heading}</h2>"))));
    assert!(order.is_sorted(), "{order:?}");
    // Each generated token with its logit and its text.
    let bits = u16::from_le_bytes([made.contents[0][0], made.contents[0][1]]);
    assert_ne!(bits, 0);
    for id in &made.statement.tokens_out {
        let token = model().tokenizer().decode(&[*id]).unwrap();
        at(&format!("{id} {}", format!("{token:?}").replace('"', "&#34;").replace('\'', "&#39;")));
    }
    // Embedding, two layers, head: one run each, all compared.
    assert_eq!(page.matches("<rect class=\"compared\" x=").count(), 4);
    assert!(!page.contains("did not confirm"));
    assert!(!page.contains("<rect class=\"open\"") && !page.contains("<mark>"));
}

#[test]
fn the_first_difference_is_drawn() {
    let home = reported(&lie(TraceMode::Steps), "MISMATCH");
    let page = page(&home, &[]);
    assert!(page.contains("<h1>MISMATCH") && page.contains("The first difference"), "{page}");
    assert_eq!(page.matches("<mark>").count(), 2, "one bit, on both sides");
    assert!(page.contains("lm_head") && page.contains("did not confirm them"));
    assert_eq!(page.matches("<rect class=\"differs\" x=").count(), 1);
    // Without rows of logits there is a digest, and no plot.
    let mut made = Making { logits: LogitsMode::Hash, ..Making::default() }.make();
    made.contents[0][0] ^= 1;
    made.commit();
    let home = reported(&made, "MISMATCH");
    let page = self::page(&home, &[]);
    assert!(page.contains("SHA-256 ") && !page.contains("<polyline"), "{page}");
    assert!(page.contains("cannot be drawn"));
}

#[test]
fn hostile_names_and_prompts_stay_text() {
    let mut made =
        Making { prompt: "<script>alert(1)</script> & \u{202e}x", ..Making::default() }.make();
    made.statement.model.name = "\"><img onerror=alert(1) src=x>\u{1b}[2J".into();
    made.commit();
    let home = reported(&made, "VERIFIED");
    let page = page(&home, &["--model", text(&tiny_model())]);
    for raw in ["<script>alert", "<img", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(raw), "{raw:?}");
    }
    assert!(page.contains("&#60;script&#62;alert(1)") && page.contains("\\u{202e}"), "{page}");
    assert!(page.contains("&#62;&#60;img onerror"));
}

#[test]
fn a_report_without_a_run_says_what_was_not_checked() {
    let home = Home::empty();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    verify(&home, "UNTRUSTED");
    let untrusted = page(&home, &[]);
    assert!(untrusted.contains("no trust file was given") && untrusted.contains("there is no map"));
    assert!(untrusted.contains("not reached: the signer is not trusted"));
    home.write("t.cbor", "no transcript");
    verify(&home, "MALFORMED");
    let malformed = page(&home, &[]);
    assert!(malformed.contains("<h1>MALFORMED") && malformed.contains("not a transcript"));
    let home = Home::configured();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--json"]));
    home.write("r.json", ended.stdout);
    assert!(page(&home, &[]).contains("<h1>INCOMPLETE"));
}

#[test]
fn what_is_no_report_on_this_transcript_is_refused() {
    let made = Making::default().make();
    let home = reported(&made, "VERIFIED");
    let report: Value = serde_json::from_slice(&fs::read(home.path("r.json")).unwrap()).unwrap();
    type Change = fn(&mut Value);
    let cases: &[(Change, &str)] = &[
        (|r| r["more"] = json!(1), "unknown field `more`"),
        (|r| drop(r.as_object_mut().unwrap().remove("layers")), "missing field `layers`"),
        (|r| r["verifier"]["more"] = json!(1), "unknown field `more`"),
        (|r| r["checks"][0]["more"] = json!(1), "unknown field `more`"),
        (|r| r["checks"][0]["reason"] = json!(""), "not the fields of outcome \"passed\""),
        (|r| drop(r["checks"].as_array_mut().unwrap().pop()), "its checks are not those"),
        (|r| r["exit"] = json!(1), "VERIFIED with exit code 1, its checks lead to VERIFIED with 0"),
        (
            |r| {
                r["checks"][7] =
                    json!({"subject": "execution", "outcome": "not_decided", "reason": ""})
            },
            "its checks lead to INCOMPLETE",
        ),
        (|r| r["transcript"] = json!("ab".repeat(32)), "is on transcript abab"),
        (|r| r["transcript"] = Value::Null, "no transcript, t.cbor is one"),
        (|r| *r = json!({ "verdict": "VERIFIED", "exit": 0, "transcripts": [] }), "unknown field"),
    ];
    let args = ["report", "t.cbor", "--report", "r.json"];
    for (change, words) in cases {
        let mut changed = report.clone();
        change(&mut changed);
        home.write("r.json", changed.to_string());
        fails(&mut home.attest(&args), 2, &["r.json", words]);
    }
    home.write("r.json", report.to_string());
    let other = Making { prompt: "Call", ..Making::default() }.make();
    home.write("t.cbor", other.seal().as_bytes());
    fails(&mut home.attest(&args), 2, &["r.json is on transcript", "t.cbor is"]);
    home.write("t.cbor", "no transcript");
    fails(&mut home.attest(&args), 2, &["t.cbor is none"]);
    home.write("t.cbor", made.seal().as_bytes());
    fails(home.attest(&args).args(["--out", "t.cbor", "--overwrite"]), 2, &["is read by this run"]);
    assert!(!home.path("report.html").exists(), "a refusal leaves no page");
}

#[test]
fn neither_the_key_nor_the_page_is_written_over() {
    let home = reported(&Making::default().make(), "VERIFIED");
    let auditor_key = home.path("auditor.pem");
    auditor().write_new(&auditor_key).unwrap();
    let before = fs::read(&auditor_key).unwrap();
    // (options, words)
    let cases: [(&[&str], &str); 4] = [
        (&["--out", "auditor.pem"], "is read by this run"),
        (&["--sig", "auditor.pem"], "is read by this run"),
        (&["--sig", "r.json"], "is read by this run"),
        (&["--out", "same", "--sig", "./same"], "the page and its signature need two files"),
    ];
    for (options, words) in cases {
        let args = ["report", "t.cbor", "--report", "r.json", "--overwrite", "--key"];
        let args = [&args[..], &[text(&auditor_key)], options].concat();
        fails(&mut home.attest(&args), 2, &[words]);
        assert_eq!(fs::read(&auditor_key).unwrap(), before);
        assert!(!home.path("report.html").exists() && !home.path("same").exists());
    }
}

#[test]
fn the_auditor_signs_and_the_trust_file_decides() {
    let made = Making::default().make();
    let home = reported(&made, "VERIFIED");
    let auditor_key = home.path("auditor.pem");
    auditor().write_new(&auditor_key).unwrap();
    let page = page(&home, &["--key", text(&auditor_key)]);
    assert!(page.contains(&auditor().public().to_hex()) && page.contains("r.json.sig"));

    let entry = |key: &PrivateKey, role: &str, rest: &str| {
        let hex = key.public().to_hex();
        format!("[[key]]\nname = \"office\"\npublic_key = \"{hex}\"\nrole = \"{role}\"\n{rest}\n")
    };
    let star = "models = \"*\"";
    let named = format!("models = [\"{}\"]", made.statement.model.digest);
    let check = ["report", "--check", "r.json", "--trust", "a.toml"];
    home.write("a.toml", entry(&auditor(), "auditor", star));
    let ended = end(&mut home.attest(&check));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\"office\"") && ended.stdout.contains("VERIFIED"));
    let json = end(home.attest(&check).arg("--json")).json();
    assert_eq!(json["transcript"], made.seal().digest().to_string());

    let cases = [
        (entry(&auditor(), "prover", star), "trusted as prover, not as auditor"),
        (entry(&key(), "auditor", star), "is not in the trust store"),
        (trust_text("\"*\""), "is not in the trust store"),
        (
            entry(&auditor(), "auditor", &format!("{star}\nvalid_until = 2020-01-01")),
            "after the window",
        ),
        (
            entry(
                &auditor(),
                "auditor",
                &format!("{star}\nrevoked_at = 2026-01-01\nreason = \"lost\""),
            ),
            "was revoked",
        ),
        (entry(&auditor(), "auditor", "models = [\"another\"]"), "name the transcript, too"),
    ];
    for (trust, words) in cases {
        home.write("a.toml", trust);
        fails(&mut home.attest(&check), 3, &[words]);
    }
    home.write("a.toml", entry(&auditor(), "auditor", &named));
    fails(&mut home.attest(&check), 3, &["name the transcript, too"]);
    assert_eq!(end(home.attest(&check).arg("t.cbor")).exit, 0);

    // Another byte of the report, another file as its signature.
    let signature = fs::read(home.path("r.json.sig")).unwrap();
    let report = fs::read(home.path("r.json")).unwrap();
    home.write("r.json", [&report[..], b"\n"].concat());
    fails(&mut home.attest(&check), 3, &["the signature is over"]);
    home.write("r.json", &report);
    let mut flipped = signature.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let longer = [&signature[..], b"\0"].concat();
    let transcript = made.seal().as_bytes().to_vec();
    let cases: [(&[u8], i32, &str); 4] = [
        (&flipped, 3, "the signature is not valid"),
        (&longer, 4, "1 bytes after"),
        (&transcript, 4, "the content type must be application/attest-report-sha256"),
        (&signature[..9], 4, "r.json.sig"),
    ];
    for (bytes, exit, words) in cases {
        home.write("r.json.sig", bytes);
        fails(&mut home.attest(&check), exit, &[words]);
    }
    // A signature over a report is no transcript.
    home.write("t.cbor", &signature);
    let ended = end(&mut home.attest(&["verify", "t.cbor"]));
    assert_eq!(ended.exit, 4, "{}", ended.stdout);
}
