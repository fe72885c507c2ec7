//! `attest custody`: what is appended, what a check finds, and what only a head shows.

use std::fs;

use attest::num::Digest;
use attest::transcript::custody::{Action, Entry, Log};
use attest::transcript::key::PrivateKey;
use attest::transcript::signed::FormVersion;
use attest::transcript::statement::Tool;
use serde_json::Value;

use crate::support::Making;
use crate::{Ended, Home, end, fails, text, tiny_model};

fn signer(seed: u8) -> PrivateKey {
    PrivateKey::from_seed(&[seed; 32])
}

fn entry(name: &str, seed: u8, rest: &str) -> String {
    let hex = signer(seed).public().to_hex();
    format!("[[key]]\nname = \"{name}\"\npublic_key = \"{hex}\"\n{rest}\n")
}

const PROVER: &str = "role = \"prover\"\nmodels = [\"any model: custody does not ask\"]";
const AUDITOR: &str = "role = \"auditor\"\nmodels = \"*\"";

/// A home with a transcript, a report, keys of a lab (1), an office (2) and a stranger (3),
/// and a trust file for the first two.
fn home() -> Home {
    let home = Home::configured();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    let model = tiny_model();
    let ended = end(&mut home.attest(&["verify", "t.cbor", "--json", "--model", text(&model)]));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
    home.write("r.json", ended.stdout);
    for seed in 1..=3 {
        signer(seed).write_new(&home.path(&format!("{seed}.pem"))).unwrap();
    }
    home.write("a.toml", entry("lab", 1, PROVER) + &entry("office", 2, AUDITOR));
    home
}

fn appending(home: &Home, key: &str, action: &str, options: &[&str]) -> assert_cmd::Command {
    let args = ["custody", "append", "--log", "log", "--transcript", "t.cbor", "--action", action];
    let mut command = home.attest(&args);
    command.args(["--key", key]).args(options);
    command
}

/// Appends; returns the new head and the length of the log.
fn append(home: &Home, key: &str, action: &str, options: &[&str]) -> (String, usize) {
    let ended = end(appending(home, key, action, options).arg("--json"));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    let head = ended.json()["head"].as_str().unwrap().to_owned();
    (head, fs::read(home.path("log")).unwrap().len())
}

/// A log of four entries: its heads and where each entry ends.
fn filled(home: &Home) -> Vec<(String, usize)> {
    vec![
        append(home, "1.pem", "handed-over", &["--note", "to the office, on a disk"]),
        append(home, "2.pem", "received", &[]),
        append(home, "2.pem", "verified", &["--report", "r.json"]),
        append(home, "2.pem", "countersigned", &["--report", "r.json", "--trust", "a.toml"]),
    ]
}

fn check(home: &Home, options: &[&str]) -> Ended {
    let args = ["custody", "check", "--log", "log", "--trust", "a.toml"];
    end(home.attest(&args).args(options))
}

/// Requires that a check of these bytes fails.
fn refused(home: &Home, bytes: &[u8], exit: i32, words: &str) {
    home.write("log", bytes);
    let args = ["custody", "check", "--log", "log", "--trust", "a.toml"];
    fails(&mut home.attest(&args), exit, &[words]);
}

#[test]
fn a_log_says_who_did_what_and_its_head_fixes_it() {
    let home = home();
    let entries = filled(&home);
    let ended = check(&home, &[]);
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\"lab\" 1, \"office\" 3"), "{}", ended.stdout);
    assert!(ended.stdout.contains("would not show"), "{}", ended.stdout);
    let json = check(&home, &["--json", "--head", &entries[1].0]).json();
    assert_eq!(json["entries"], 4);
    assert_eq!(json["earlier_head_at"], 2);
    assert_eq!(json["head"], entries[3].0);

    let show = end(&mut home.attest(&["custody", "show", "--log", "log", "--json"])).json();
    let rows = show["entries"].as_array().unwrap();
    let actions: Vec<&Value> = rows.iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["handed-over", "received", "verified", "countersigned"]);
    assert_eq!(rows[0]["note"], "to the office, on a disk");
    assert_eq!(rows[0]["verdict"], Value::Null);
    assert_eq!(rows[2]["verdict"], "VERIFIED");
    assert_eq!(rows[2]["digest"], entries[2].0);
    assert_eq!(rows[2]["tables"], attest::verify::tables::digest().to_string());
    let shown = end(&mut home.attest(&["custody", "show", "--log", "log"])).stdout;
    assert!(shown.contains("no signature was checked") && shown.contains("note \"to the office"));
}

#[test]
fn removing_swapping_editing_and_splicing_are_found() {
    let home = home();
    let ends: Vec<usize> = filled(&home).iter().map(|(_, end)| *end).collect();
    let log = fs::read(home.path("log")).unwrap();
    let part = |index: usize| {
        let start = if index == 0 { 0 } else { ends[index - 1] };
        log[start..ends[index]].to_vec()
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(part);
    fs::remove_file(home.path("log")).unwrap();
    append(&home, "2.pem", "received", &["--note", "of another log"]);
    append(&home, "2.pem", "received", &[]);
    let other = fs::read(home.path("log")).unwrap();
    let spliced = other[Log::read(&other).unwrap().entries()[0].envelope.end..].to_vec();
    let mut edited = a.clone();
    let at = edited.windows(6).position(|found| found == b"office").unwrap();
    edited[at] ^= 0x20;
    let mut resigned = d.clone();
    *resigned.last_mut().unwrap() ^= 1;
    // (log, exit code, words)
    let cases = [
        ([&b[..], &c, &d].concat(), 4, "byte 0: entry 1 is due, found entry 2"),
        ([&a[..], &c, &d].concat(), 4, "entry 2 is due, found entry 3"),
        ([&a[..], &c, &b, &d].concat(), 4, "entry 2 is due, found entry 3"),
        ([&a[..], &b, &b].concat(), 4, "entry 3 is due, found entry 2"),
        ([&edited[..], &b, &c, &d].concat(), 4, "entry 2 follows"),
        ([&a[..], &spliced, &c, &d].concat(), 4, "entry 2 follows"),
        (edited, 3, "entry 1: the signature is not valid"),
        ([&a[..], &b, &c, &resigned].concat(), 3, "entry 4: the signature is not valid"),
        ([&a[..], &b, &c, &d, b"\n"].concat(), 4, "entry 5, which starts at byte"),
        (log[..ends[3] - 1].to_vec(), 4, "entry 4, which starts at byte"),
        (Vec::new(), 4, "no entry is in it"),
    ];
    for (bytes, exit, words) in &cases {
        refused(&home, bytes, *exit, words);
    }
    let start = format!("entry 4, which starts at byte {}: byte", ends[2]);
    refused(&home, &log[..ends[2] + 100], 4, &start);
}

#[test]
fn only_an_earlier_head_shows_a_dropped_tail_and_a_log_written_anew() {
    let home = home();
    let entries = filled(&home);
    let log = fs::read(home.path("log")).unwrap();
    let gone = ["no entry has the digest", "entries are gone or were written anew"];
    let with = |head: &str| {
        let args = ["custody", "check", "--log", "log", "--trust", "a.toml", "--head", head];
        home.attest(&args)
    };
    home.write("log", &log[..entries[2].1]);
    assert_eq!(check(&home, &[]).exit, 0, "the tail is gone, and nothing in the file says so");
    assert_eq!(end(&mut with(&entries[2].0)).exit, 0);
    fails(&mut with(&entries[3].0), 1, &gone);
    // The office writes its entries again, without the one that it regrets.
    home.write("log", &log[..entries[0].1]);
    append(&home, "2.pem", "received", &["--note", "late"]);
    assert_eq!(check(&home, &[]).exit, 0);
    assert_eq!(end(&mut with(&entries[0].0)).exit, 0);
    fails(&mut with(&entries[1].0), 1, &gone);
    assert_eq!(end(&mut with("abc")).exit, 2);
}

#[test]
fn every_entry_needs_a_trusted_key_in_its_window() {
    let home = home();
    filled(&home);
    let log = fs::read(home.path("log")).unwrap();
    let office = entry("office", 2, AUDITOR);
    let window = format!("{PROVER}\nvalid_until = 2020-01-01");
    let revoked = format!("{AUDITOR}\nrevoked_at = 2026-01-01\nreason = \"lost\"");
    // (trust file, words)
    let cases = [
        (office.clone(), "entry 1: key"),
        (office.clone() + &entry("lab", 1, &window), "entry 1: the claimed time"),
        (
            entry("lab", 1, PROVER) + &entry("office", 2, &revoked),
            "entry 2: the key of \"office\" was revoked",
        ),
        (
            entry("lab", 1, PROVER) + &entry("office", 2, PROVER),
            "entry 3: the key of \"office\" is trusted as prover, not as auditor",
        ),
    ];
    for (trust, words) in cases {
        home.write("a.toml", trust);
        refused(&home, &log, 3, words);
    }
    fails(
        &mut home.attest(&["custody", "check", "--log", "log"]),
        3,
        &["is not in the trust store"],
    );
    let empty = Home::empty();
    empty.write("log", &log);
    fails(&mut empty.attest(&["custody", "check", "--log", "log"]), 3, &["no trust file"]);
}

#[test]
fn nothing_is_appended_to_what_is_broken_or_would_break() {
    let home = home();
    // Refused before there is a log.
    let cases: [(&str, &[&str], &str); 5] = [
        ("verified", &[], "verified and countersigned need a report"),
        ("note", &[], "a note needs its text"),
        ("note", &["--note", ""], "the note is empty"),
        ("received", &["--report", "t.cbor"], "t.cbor: not a report"),
        ("received", &["--trust", "gone.toml"], "gone.toml"),
    ];
    for (action, options, words) in cases {
        fails(&mut appending(&home, "1.pem", action, options), 2, &[words]);
        assert!(!home.path("log").exists(), "{words}");
    }
    let trusted = ["--trust", "a.toml"];
    let not = ["the new entry would not be trusted"];
    fails(&mut appending(&home, "3.pem", "received", &trusted), 3, &not);
    fails(
        appending(&home, "1.pem", "verified", &trusted).args(["--report", "r.json"]),
        3,
        &["trusted as prover, not as auditor"],
    );
    assert!(!home.path("log").exists(), "nor does a key that nobody trusts begin one");
    filled(&home);
    let log = fs::read(home.path("log")).unwrap();
    let unchanged = |bytes: &[u8], key: &str, options: &[&str], exit: i32, words: &str| {
        home.write("log", bytes);
        fails(&mut appending(&home, key, "received", options), exit, &[words]);
        assert_eq!(fs::read(home.path("log")).unwrap(), bytes, "{words}");
    };
    unchanged(&log, "3.pem", &trusted, 3, not[0]);
    unchanged(&log[..log.len() - 1], "2.pem", &[], 4, "entry 4, which starts at byte");
    let mut flipped = log.clone();
    *flipped.last_mut().unwrap() ^= 1;
    unchanged(&flipped, "2.pem", &[], 3, "entry 4 names key");
    unchanged(&flipped, "1.pem", &trusted, 3, "entry 4: the signature is not valid");
    home.write("log", &log);
    append(&home, "3.pem", "received", &[]);
    let strange = fs::read(home.path("log")).unwrap();
    unchanged(&strange, "1.pem", &trusted, 3, "entry 5: key");
    // A clock that is behind the log's.
    let read = Log::read(&log).unwrap();
    let future = Entry {
        version: FormVersion,
        number: 5,
        previous: read.head(),
        time: 9_999_999_999,
        action: Action::Note,
        transcript: Digest([1; 32]),
        verdict: None,
        report: None,
        note: Some("from the future".into()),
        tool: Tool { name: "attest".into(), version: "0.1.0".into() },
        tables: Digest([2; 32]),
    };
    let ahead = [&log[..], &future.seal(&signer(2))].concat();
    unchanged(&ahead, "2.pem", &[], 2, "the entry before it of 9999999999");
}

#[test]
fn appenders_at_the_same_time_do_not_interleave() {
    let home = home();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let (home, note) = (&home, format!("appender {index}"));
            let key = if index % 2 == 0 { "1.pem" } else { "2.pem" };
            scope.spawn(move || {
                append(home, key, "note", &["--note", &note]);
            });
        }
    });
    let json = check(&home, &["--json"]).json();
    assert_eq!(json["entries"], 8);
    assert_eq!((&json["signers"]["lab"], &json["signers"]["office"]), (&4.into(), &4.into()));
}
