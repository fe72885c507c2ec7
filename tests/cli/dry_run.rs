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
    let files = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json"];
    let lengths = files.map(|file| fs::metadata(tiny_model().join(file)).unwrap().len());
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
