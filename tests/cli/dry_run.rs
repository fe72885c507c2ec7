//! `attest verify --dry-run`: a cost, never a verdict.

use std::fs;

use crate::support::Making;
use crate::{Home, end, tiny_model};

/// A home with an honest transcript and, of its model, the named files only.
fn home_with(files: &[&str]) -> Home {
    let home = Home::configured();
    home.write("t.cbor", Making::default().make().seal().as_bytes());
    fs::create_dir(home.path("model")).unwrap();
    for file in files {
        fs::copy(tiny_model().join(file), home.path("model").join(file)).unwrap();
    }
    home
}

const FILES: [&str; 4] =
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"];

const DRY_RUN: [&str; 5] = ["verify", "t.cbor", "--model", "model", "--dry-run"];

#[test]
fn a_dry_run_needs_no_weights_and_says_that_nothing_was_verified() {
    let home = home_with(&["config.json"]);
    let ended = end(&mut home.attest(&DRY_RUN));
    assert_eq!((ended.exit, &*ended.stderr), (0, ""), "{}", ended.stdout);
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("nothing was verified"), "{last}");
    assert!(!ended.stdout.contains("VERIFIED"), "{}", ended.stdout);
    for line in ["encoding", "trust", "environment", "multiply-adds", "memory", "estimate"] {
        assert!(ended.stdout.lines().any(|l| l.starts_with(line)), "{line}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("not reached"), "{}", ended.stdout);
    let hashed: u64 = FILES.iter().map(|f| fs::metadata(tiny_model().join(f)).unwrap().len()).sum();
    let hashed = format!("{}.{:03} MB hashed", hashed / 1_000_000, hashed / 1000 % 1000);
    assert!(ended.stdout.contains(&hashed), "{hashed}: {}", ended.stdout);
    assert!(!ended.stdout.contains(" 0.0"), "a unit that fits: {}", ended.stdout);

    let json = end(home.attest(&DRY_RUN).arg("--json")).json();
    assert_eq!(
        (&json["dry_run"], &json["verdict"], &json["exit"]),
        (&true.into(), &().into(), &0.into())
    );
    let cost = &json["cost"];
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let multiply_adds = &cost["multiply_adds"];
    let parts = ["linear", "logits", "attention"].map(|part| number(&multiply_adds[part]));
    assert_eq!(parts.iter().sum::<u64>(), number(&multiply_adds["all"]));
    assert_eq!(parts[1], 3 * 1536 * 256, "three tokens were chosen");
    let lengths = FILES.map(|file| fs::metadata(tiny_model().join(file)).unwrap().len());
    assert_eq!(number(&cost["hashed_bytes"]), lengths.iter().sum::<u64>());
    assert!(cost["estimated_seconds"].as_f64().unwrap() > 0.0);
    assert!(cost["calibration"]["gmac_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_would_not_be_executed_has_its_verdict_and_no_cost() {
    let fails = |home: &Home, exit: i32, word: &str, sentence: &str| {
        let ended = end(&mut home.attest(&DRY_RUN));
        assert_eq!(ended.exit, exit, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout.lines().last(), Some(word), "{}", ended.stdout);
        assert!(ended.stdout.contains(sentence), "{sentence}: {}", ended.stdout);
        let json = end(home.attest(&DRY_RUN).arg("--json")).json();
        assert_eq!((&json["verdict"], &json["cost"]), (&word.into(), &().into()));
    };
    let home = home_with(&[]);
    fails(&home, 5, "INCOMPLETE", "config.json is missing");
    let home = home_with(&["config.json"]);
    let config = home.path("model/config.json");
    let other = fs::read_to_string(&config).unwrap() + "\n";
    fs::write(&config, other).unwrap();
    fails(&home, 5, "INCOMPLETE", "config.json has SHA-256");
    home.write("t.cbor", "no transcript");
    fails(&home, 4, "MALFORMED", "encoding     FAILED");
}

#[test]
fn a_check_that_failed_decides_the_exit_code_beside_the_cost() {
    let home = home_with(&["config.json"]);
    let dry = |more: &[&str]| {
        let ended = end(home.attest(&DRY_RUN).args(more));
        let json = end(home.attest(&DRY_RUN).args(more).arg("--json")).json();
        assert_eq!(json["exit"], ended.exit, "{json}");
        (ended, json)
    };
    for (what, more) in
        [("freshness    FAILED", &["--nonce", "00"][..]), ("trust        FAILED", &[ANYONE])]
    {
        let (ended, json) = dry(more);
        assert_eq!((ended.exit, json["verdict"].as_str()), (3, Some("UNTRUSTED")), "{json}");
        assert!(ended.stdout.contains(what), "{what}: {}", ended.stdout);
        assert!(ended.stdout.contains("nothing was verified"), "{}", ended.stdout);
        assert_eq!(ended.stdout.lines().last(), Some("UNTRUSTED"), "{}", ended.stdout);
        assert!(json["cost"]["hashed_bytes"].is_u64(), "an execution would begin: {json}");
    }
    let (ended, json) = dry(&["--nonce", &"ab".repeat(16)]);
    assert_eq!((ended.exit, &json["verdict"]), (0, &().into()), "{}", ended.stdout);
    // Without a trust file nothing would be executed.
    fs::remove_file(home.config().join("trust.toml")).unwrap();
    let (ended, json) = dry(&[]);
    assert_eq!((ended.exit, &json["cost"]), (3, &().into()), "{}", ended.stdout);
    assert!(ended.stderr.contains("hint: name a trust file"), "{}", ended.stderr);
}

const ANYONE: &str = "--insecure-accept-any-key";
