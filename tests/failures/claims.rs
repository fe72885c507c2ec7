//! Claims and signatures: what a signer says of a run, and who is believed.

use attest::transcript::Transcript;
use attest::transcript::cose::Envelope;
use attest::transcript::statement::Extension;
use ciborium::Value;

use crate::command::{Home, end, text, tiny_model};
use crate::judged;
use crate::support::{Made, Making, trust_text};

/// An honest transcript whose signer says something more.
fn saying(value: Value) -> Made {
    let mut made = Making::default().make();
    made.statement.extensions.push(Extension { key: 64, value });
    made
}

/// Row 21: the signature that fits every message under a weak key. (The key itself is
/// refused when the trust file is read.)
#[test]
fn the_signature_that_fits_every_message_is_untrusted() {
    let sealed = Making::default().make().seal();
    let mut file = sealed.as_bytes().to_vec();
    let end = Envelope::open(&file).unwrap().end;
    file[end - 64..end].fill(0);
    file[end - 64] = 1;
    let home = Home::configured();
    home.write("t.cbor", file);
    judged(&home, &[], 3, "signature", &["FAILED", "is not valid"]);
}

/// Row 23.
#[cfg(unix)]
#[test]
fn a_shell_does_not_go_on_after_a_tampered_file() {
    let home = Home::configured();
    let script = r#""$ATTEST" verify t.cbor --model "$MODEL" && echo THE NEXT COMMAND"#;
    let file = Making::default().make().seal().as_bytes().to_vec();
    for at in [None, Some(40), Some(file.len() / 2), Some(file.len() - 1)] {
        let mut file = file.clone();
        if let Some(at) = at {
            file[at] ^= 1;
        }
        home.write("t.cbor", file);
        let mut shell = assert_cmd::Command::new("sh");
        shell.args(["-c", script]).current_dir(home.path(""));
        shell.env("ATTEST_CONFIG", home.config()).env("MODEL", tiny_model());
        let ended = end(shell.env("ATTEST", env!("CARGO_BIN_EXE_attest")));
        assert_eq!(ended.exit == 0, at.is_none(), "{at:?}: {}", ended.stdout);
        assert_eq!(ended.stdout.contains("THE NEXT COMMAND"), at.is_none(), "{at:?}");
        assert_eq!(ended.stdout.contains("VERIFIED"), at.is_none(), "{at:?}: {}", ended.stdout);
    }
}

/// Row 26: a trust file and a GPU profile inside the transcript are words.
#[test]
fn what_a_transcript_brings_along_vouches_for_nothing() {
    let home = Home::empty();
    let own = Value::Array(vec![
        Value::from(trust_text("\"*\"")),
        Value::from("id = \"h200\"\n[mma.bf16]\nn_fma = 1\n"),
        Value::from("verified: true"),
    ]);
    home.write("t.cbor", saying(own).seal().as_bytes());
    let ended = judged(&home, &[], 3, "trust", &["no trust file was given"]);
    assert!(!ended.stdout.contains("execution    ok"), "{}", ended.stdout);

    home.write("mine.toml", trust_text("\"*\""));
    let trust = ["--trust", "mine.toml"];
    let ended = judged(&home, &trust, 0, "signer says", &["unknown keys 64"]);
    let by = ended.stdout.lines().find(|line| line.starts_with("checked by")).unwrap();
    assert!(by.contains("trust file mine.toml (SHA-256 "), "{by}");
}

/// Row 27.
#[test]
fn a_claimed_property_is_not_taken_for_a_result() {
    let home = Home::configured();
    let claim = Value::Map(vec![(Value::from("batch_invariant"), Value::from(1))]);
    let mut made = saying(claim);
    home.write("t.cbor", made.seal().as_bytes());
    judged(&home, &[], 0, "signer says", &["unknown keys 64"]);
    made.contents[0][2 * 1536 + 8] ^= 1;
    made.commit();
    home.write("t.cbor", made.seal().as_bytes());
    judged(&home, &[], 1, "execution", &["FAILED", "pass 1", "1 of 1536 elements differ"]);
}

/// Row 28: the clock of the verifier takes no part; the claimed time is held against
/// the window of the key.
#[test]
fn a_claimed_time_outside_the_window_of_the_key_is_untrusted() {
    let home = Home::configured();
    // (seconds since 1970, sentence)
    let cases = [
        (0, "1970-01-01T00:00:00Z is before the window"),
        (4_070_908_800, "2099-01-01T00:00:00Z is after the window"),
    ];
    for (time, sentence) in cases {
        let mut made = Making::default().make();
        made.statement.claimed_time = time;
        home.write("t.cbor", made.seal().as_bytes());
        judged(&home, &[], 3, "trust", &["FAILED", sentence]);
    }
    let sealed: Transcript = Making::default().make().seal();
    home.write("t.cbor", sealed.as_bytes());
    let model = tiny_model();
    let ended = end(home
        .attest(&["verify", "t.cbor", "--model", text(&model)])
        .env("SOURCE_DATE_EPOCH", "0"));
    assert_eq!(ended.exit, 0, "{}", ended.stdout);
}
